"""Devices and dtypes are what was asked for, or measured once and remembered."""

import json

import pytest
import torch

from specviz.errors import ConfigError
from specviz.models import device
from specviz.models.device import choose_device, choose_dtype, decode_times, device_name

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    monkeypatch.setattr(device, "_SECONDS", 0.01)
    return tmp_path / "dtype.json"


def test_auto_takes_what_there_is():
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    assert choose_device("cpu") == CPU


@pytest.mark.parametrize("name", ["gpu", "", "CPU", "cuda:99"])
def test_an_unknown_device_lists_the_known_ones(name):
    with pytest.raises(ConfigError, match="auto, cpu, cuda, mps"):
        choose_device(name)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="there is: cpu"):
        choose_device("cuda")


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_a_named_dtype_is_taken_without_measuring(cache, name):
    assert choose_dtype(CPU, name) == getattr(torch, name)
    assert not cache.exists()


@pytest.mark.parametrize("name", ["fp32", "float64", ""])
def test_an_unknown_dtype_lists_the_known_ones(name):
    with pytest.raises(ConfigError, match="auto, float32, bfloat16, float16"):
        choose_dtype(CPU, name)


def test_auto_measures_once_per_machine_torch_and_threads(cache, monkeypatch):
    chosen = choose_dtype(CPU)
    assert chosen in (torch.float32, torch.bfloat16)
    monkeypatch.setattr(device, "_measure", lambda _: pytest.fail("measured again"))
    assert choose_dtype(CPU) == chosen
    (key,) = json.loads(cache.read_text())
    assert device_name(CPU) in key
    assert torch.__version__ in key


@pytest.mark.parametrize(("faster", "slower"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_auto_is_the_faster_of_the_two(monkeypatch, faster, slower):
    monkeypatch.setattr(device, "_measure", lambda _: {slower: 0.2, faster: 0.1})
    assert choose_dtype(CPU) == getattr(torch, faster)


def test_both_dtypes_are_really_timed():
    times = decode_times(CPU)
    assert times.keys() == {"float32", "bfloat16"}
    assert all(0 < seconds < 60 for seconds in times.values())


def test_measuring_leaves_the_number_of_threads_alone():
    before = torch.get_num_threads()
    decode_times(CPU)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("content", ["", "[]", '{"x": 1}', '{"x": {"int4": 1.0}}', "\x00"])
def test_a_damaged_memory_is_measured_anew(cache, content):
    cache.write_text(content)
    assert choose_dtype(CPU) in (torch.float32, torch.bfloat16)


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "file"))
    assert choose_dtype(CPU) in (torch.float32, torch.bfloat16)

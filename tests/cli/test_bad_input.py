"""Every bad input the command line can meet: status 2, a sentence, no traceback."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specviz import recordings
from tests.cli.conftest import Call, Outcome
from tests.cli.folders import write_model


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.status == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err


@pytest.mark.parametrize("prompt", ["", "   \n"])
def test_an_empty_prompt_is_refused(decode: Call, prompt: str) -> None:
    refused(decode("--prompt", prompt), "prompt is empty")


def test_a_missing_prompt_names_the_flags(call: Call) -> None:
    refused(call("run"), "--prompt")


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(decode: Call) -> None:
    refused(decode("--raw", "--prompt", "a" * 300), "300", "256")


def test_a2_an_unknown_scheme_lists_the_valid_ones_before_anything_is_loaded(call: Call) -> None:
    outcome = call("run", "--prompt", "a", "--scheme", "gram", "--model", "/no/such/folder")
    refused(outcome, "gram", "ngram", "suffix", "draft_model", "none")


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (("-D", "-1"), "draft_length"),
        (("-D", "100000"), "draft_length"),
        (("--max-tokens", "0"), "max_tokens"),
        (("--max-tokens", str(10**30)), "max_tokens"),
        (("--temperature", "nan"), "temperature"),
        (("--temperature", "-1"), "temperature"),
        (("--temperature", "inf"), "temperature"),
        (("--top-p", "0"), "top_p"),
        (("--top-k", "-5"), "top_k"),
        (("--min-p", "1"), "min_p"),
        (("--repetition-penalty", "0"), "repetition_penalty"),
        (("--seed", "-1"), "seed"),
        (("--seed", str(2**70)), "seed"),
        (("--stop", ""), "stop"),
        (("--stop", "a\udcff"), "stop"),  # how a byte that is no UTF-8 reaches a program
        (("--draft-model", ""), "draft_model"),
        (("--logit-bias", "x"), "logit_bias"),
        (("--logit-bias", "5"), "logit_bias"),
        (("--logit-bias=-5=1",), "logit_bias"),
        (("--verifier", "magic"), "verifier"),
        (("--detail", "all"), "detail"),
        (("--ngram-min", "5", "--ngram-max", "2"), "ngram"),
        (("--ngram-tie", "none"), "ngram_tie"),
        (("--draft-min-p", "7"), "draft_min_p"),
        (("--lossless-limit", "-1"), "lossless_limit"),
    ],
)
def test_a_setting_out_of_range_is_named(call: Call, flags: tuple[str, ...], name: str) -> None:
    refused(call("run", "--prompt", "a", "--model", "/no/such/folder", *flags), name)


def test_words_in_place_of_numbers_are_refused(call: Call) -> None:
    refused(call("run", "--prompt", "a", "-D", "many"), "--draft-length")


def test_a_missing_model_is_named(call: Call, tmp_path: Path) -> None:
    refused(call("run", "--prompt", "a", "--model", str(tmp_path / "none")), "none")


def test_an_empty_name_is_no_model(call: Call) -> None:
    refused(call("run", "--prompt", "a", "--model", ""), "no model is named")


def test_a_truncated_model_is_refused(call: Call, model: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(model, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refused(call("run", "--prompt", "a", "--model", str(broken)), "model.safetensors")


def test_a_corrupt_configuration_is_refused(call: Call, model: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(model, tmp_path / "broken")
    (broken / "config.json").write_text("{", encoding="utf-8")
    refused(call("run", "--prompt", "a", "--model", str(broken)), "config.json")


def test_pickled_weights_are_refused_and_never_run(call: Call, model: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    pickled = shutil.copytree(model, tmp_path / "pickled")
    (pickled / "model.safetensors").unlink()
    (pickled / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    refused(call("run", "--prompt", "a", "--model", str(pickled)), "pytorch_model.bin")
    assert not (tmp_path / "sprung").exists()


def test_b10_a_missing_draft_model_is_an_error_with_its_name(decode: Call, tmp_path: Path) -> None:
    flags = ("--scheme", "draft_model", "--draft-model", str(tmp_path / "none"))
    refused(decode(*flags), "none")


def test_b10_a_scheme_without_its_draft_model_says_which_flag(decode: Call) -> None:
    refused(decode("--scheme", "draft_model"), "--draft-model")


def test_d1_a_draft_model_of_another_vocabulary_is_refused(decode: Call, tmp_path: Path) -> None:
    other = write_model(tmp_path / "other", swap=True)
    refused(decode("--scheme", "draft_model", "--draft-model", str(other)), "5")


def test_nan_in_the_weights_stops_the_run_and_says_where(call: Call, tmp_path: Path) -> None:
    poisoned = write_model(tmp_path / "poisoned", nan=True)
    outcome = call("run", "--prompt", "a", "--model", str(poisoned), "--dtype", "float32")
    assert outcome.status == 2
    assert "NaN" in outcome.err
    assert "Traceback" not in outcome.err


def test_an_unreadable_prompt_file_is_named(decode: Call, tmp_path: Path) -> None:
    refused(decode("--prompt-file", str(tmp_path / "none.txt")), "none.txt")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    refused(decode("--prompt-file", str(binary)), "UTF-8")


def test_an_unknown_prompt_id_lists_the_ids(decode: Call) -> None:
    refused(decode("--prompt-id", "nope"), "copy-list")


def test_a_trace_that_cannot_be_saved_is_refused_before_the_run(call: Call, tmp_path: Path) -> None:
    out = str(tmp_path / "no" / "run.json")
    refused(call("run", "--prompt", "a", "--model", "/no/such", "--trace", out), "run.json")


def test_a_pipe_is_no_trace_and_is_left_alone(call: Call, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    outcome = call("run", "--prompt", "a", "--model", "/no/such", "--trace", str(pipe))
    refused(outcome, "a device or a pipe")
    recording = str(recordings.path("ngram-copy"))
    refused(call("trace", "import", recording, "-o", str(pipe)), "a device or a pipe")
    assert pipe.is_fifo()


def test_a_bad_request_ends_a_real_process_with_status_2_and_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "specviz", "run", "--prompt", "a", "--temperature", "nan"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "temperature" in done.stderr
    assert "Traceback" not in done.stderr

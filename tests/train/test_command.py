"""`train` from prompts to a card, killed and resumed on the way."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from specviz import cli
from specviz.errors import ConfigError
from specviz.heads import load as heads
from specviz.heads.eagle3 import Eagle3Head
from specviz.models.chat import ChatTemplate
from specviz.models.load import Loaded
from specviz.models.text import Tokenizer
from specviz.train.corpus import read_corpora
from specviz.train.data import Answering, answer_prompts
from tests.train.tiny_corpus import VOCAB, answer, tiny_target

TEMPLATE = "{% for m in messages %}{{ m['role'][0] }}{{ m['content'] }}z{% endfor %}a"  # s, u, a, z


def tiny_tokenizer() -> Tokenizer:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[:VOCAB]
    backend = Backend(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return Tokenizer(backend, chat=ChatTemplate(TEMPLATE, {}, "tiny"))


@pytest.fixture
def loaded() -> Loaded:
    return Loaded(tiny_target(), tiny_tokenizer(), "tiny")


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    lines: list[object] = [
        "AB",
        {"prompt": "CD", "source": "letters"},
        {
            "messages": [
                {"role": "system", "content": "X"},
                {"role": "user", "content": "EF"},
                {"role": "assistant", "content": "not ours"},
                {"role": "user", "content": "GH"},
            ]
        },
        "IJ",
    ]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


ANSWERING = Answering(temperatures=(0.0, 0.0, 0.8), max_tokens=6)


def test_prompts_are_answered_by_the_target_itself(
    loaded: Loaded, prompts: Path, tmp_path: Path
) -> None:
    path = answer_prompts(loaded, prompts, tmp_path / "out.jsonl", ANSWERING)
    examples = read_corpora([path])
    assert [e.kind for e in examples] == ["prompt", "letters", "prompt", "prompt", "prompt"]
    assert [e.greedy for e in examples] == [True, True, False, False, True]
    first = examples[0]
    plain = answer(tiny_target(), first.tokens[: first.prompt_length], len(first.response))
    assert first.tokens == plain
    turns = examples[2:4]  # of one conversation: the second holds the first and its own answer
    assert turns[1].tokens[: turns[0].prompt_length] == turns[0].tokens[: turns[0].prompt_length]
    said = loaded.tokenizer.decode(turns[0].response)
    assert said in loaded.tokenizer.decode(turns[1].tokens[: turns[1].prompt_length])


def test_answering_goes_on_after_a_kill_as_if_nothing_had_been(
    loaded: Loaded, prompts: Path, tmp_path: Path
) -> None:
    whole = answer_prompts(loaded, prompts, tmp_path / "whole.jsonl", ANSWERING).read_text()
    cut = tmp_path / "cut.jsonl"
    lines = whole.splitlines(keepends=True)
    cut.write_text("".join(lines[:2]) + lines[2][:10])
    assert answer_prompts(loaded, prompts, cut, ANSWERING).read_text() == whole


@pytest.mark.parametrize("line", ["{", "[]", '{"messages": [{"role": "system", "content": "x"}]}'])
def test_a_line_without_a_prompt_is_refused_by_its_number(
    loaded: Loaded, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('"fine"\n' + line + "\n")
    with pytest.raises(ConfigError, match="line 2"):
        answer_prompts(loaded, path, tmp_path / "out.jsonl")


def run(folder: Path, *more: str) -> int:
    command = ["train", "--scheme", "eagle3", "--prompts", str(folder / "many.jsonl")]
    command += ["--out", str(folder / "eagle3"), "--features", str(folder / "features")]
    command += ["--max-tokens", "8", "--draft-vocab", "40", "--batch-tokens", "64"]
    command += ["--steps", "4", "--measure-every", "2", "--warmup", "1", "--no-autocast"]
    return cli.main([*command, *more])


def test_the_command_trains_a_head_with_a_card(
    loaded: Loaded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("specviz.models.load.load", lambda *args, **kwargs: loaded)
    lines = [json.dumps(chr(65 + i % 20) + chr(66 + i % 7)) for i in range(24)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines) + "\n")
    assert run(tmp_path, "--prepare") == 0
    assert "24 texts are ready" in capsys.readouterr().out
    assert run(tmp_path) == 0
    output = capsys.readouterr()
    best = Path(output.out.strip())
    assert "held-out E[L]" in output.err
    head = heads.load(best, loaded.target.config)
    assert isinstance(head, Eagle3Head)
    assert head.draft_ids is not None
    assert len(head.draft_ids) == 40

    card = json.loads((best / "card.json").read_text())
    assert card["scheme"] == "eagle3"
    assert card["target"]["name"] == loaded.target.config.name
    assert card["acceptance_length"]["all"] >= 1
    assert [mark["step"] for mark in card["marks"]] == [2, 4]
    assert card["data"][0]["file"] == "responses.jsonl"
    assert card["recipe"]["draft_vocab"] == 40
    assert str(tmp_path) not in json.dumps(card)
    assert "--steps 4" in card["command"]
    readme = (best / "README.md").read_text()
    assert "| all |" in readme
    assert card["command"] in readme
    assert (best / "training.svg").read_text().startswith("<svg")


def test_a_finished_run_is_not_trained_again(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.models.load.load", lambda *args, **kwargs: loaded)
    lines = [json.dumps(chr(65 + i % 20)) for i in range(24)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines) + "\n")
    run(tmp_path)
    state = (tmp_path / "eagle3" / "state.safetensors").read_bytes()
    assert run(tmp_path) == 0
    assert (tmp_path / "eagle3" / "state.safetensors").read_bytes() == state


def test_a_run_that_goes_on_with_more_text_keeps_its_draft_vocabulary(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.models.load.load", lambda *args, **kwargs: loaded)
    lines = [json.dumps(chr(65 + i % 20) + chr(66 + i % 9)) for i in range(30)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines) + "\n")
    run(tmp_path, "--rows", "22", "--until", "2", "--draft-vocab", "12")
    card = json.loads((tmp_path / "eagle3" / "best" / "card.json").read_text())
    assert [mark["step"] for mark in card["marks"]] == [2]
    ids = (tmp_path / "eagle3" / "draft_ids.json").read_text()
    run(tmp_path, "--draft-vocab", "12")
    card = json.loads((tmp_path / "eagle3" / "best" / "card.json").read_text())
    assert [mark["step"] for mark in card["marks"]] == [2, 4]
    assert (tmp_path / "eagle3" / "draft_ids.json").read_text() == ids


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--scheme", "medusa"], "scheme is 'medusa'"),
        (["--scheme", "dflash", "--block", "1"], "block is 1"),
        (["--scheme", "eagle3", "--slot-weights", "even"], "slot_weights is 'even'"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused_before_anything_is_loaded(
    flags: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", "--out", str(tmp_path), *flags]) == cli.REFUSED
    assert says in capsys.readouterr().err

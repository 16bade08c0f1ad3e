import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call

PROMISED = {
    "scheme",
    "draft_length",
    "device",
    "dtype",
    "prompt_tokens",
    "output_tokens",
    "output_ids",
    "text",
    "rounds",
    "drafted",
    "accepted",
    "acceptance_length",
    "acceptance_rate",
    "tpot_ms",
    "baseline_tpot_ms",
    "speedup",
    "predicted_speedup",
    "timing",
    "lossless",
    "finish_reason",
}


def test_json_has_every_promised_key(decode: Call) -> None:
    facts = decode("--json").json
    assert set(facts) >= PROMISED
    assert set(facts["timing"]) == {"draft", "score", "verify", "commit", "other"}
    assert set(facts["lossless"]) >= {"class", "first_divergence", "margin", "worst_gap"}


def test_the_counts_of_one_run_agree_with_each_other(decode: Call) -> None:
    facts = decode("--json", "--ignore-eos").json
    assert facts["output_tokens"] == len(facts["output_ids"]) == 24
    assert facts["finish_reason"] == "length"
    assert facts["text_excludes_stop"] is False
    assert facts["acceptance_length"] == facts["output_tokens"] / facts["rounds"]
    assert facts["accepted"] <= facts["drafted"]


def test_h2_a_run_of_one_round_has_its_statistics(decode: Call) -> None:
    facts = decode("--json", "--max-tokens", "1").json
    assert facts["rounds"] == 1
    assert facts["acceptance_length"] == 1
    assert facts["tpot_ms"] > 0


def test_every_scheme_gives_the_text_of_plain_decoding(decode: Call) -> None:
    plain = decode("--json", "--scheme", "none").json
    for scheme in ("ngram", "suffix"):
        facts = decode("--json", "--scheme", scheme, "-D", "5").json
        assert facts["output_ids"] == plain["output_ids"]
        assert facts["lossless"]["class"] == "identical"


def test_a_draft_model_is_named_and_used(decode: Call, model: Path) -> None:
    facts = decode("--json", "--scheme", "draft_model", "--draft-model", str(model)).json
    assert facts["draft_model"]
    assert facts["acceptance_rate"] == 1
    assert facts["lossless"]["class"] == "identical"


def test_what_was_not_measured_is_null_and_never_zero(decode: Call) -> None:
    facts = decode("--json", "--no-lossless").json
    assert facts["lossless"]["class"] == "not-run"
    for name in ("baseline_tpot_ms", "speedup", "predicted_speedup"):
        assert facts[name] is None
    facts = decode("--json", "--scheme", "none").json
    assert facts["acceptance_rate"] is None


def test_an_output_longer_than_the_limit_is_not_replayed(decode: Call) -> None:
    flags = ("--json", "--ignore-eos", "--lossless-limit")
    assert decode(*flags, "23").json["lossless"]["class"] == "not-run"
    assert decode(*flags, "24").json["lossless"]["compared"] == 24


def test_g6_max_tokens_is_never_overshot(decode: Call, model: Path) -> None:
    same = ("--scheme", "draft_model", "--draft-model", str(model), "-D", "4", "--ignore-eos")
    facts = decode("--json", *same, "--max-tokens", "7").json
    assert facts["output_tokens"] == 7
    assert facts["finish_reason"] == "length"


def test_the_progress_of_a_draft_model_is_shown(decode: Call, model: Path, tmp_path: Path) -> None:
    draft = shutil.copytree(model, tmp_path / "small-one")
    outcome = decode("--json", "--scheme", "draft_model", "--draft-model", str(draft))
    assert "loading small-one" in outcome.err


def test_a_draft_length_beyond_what_is_left_is_fine(decode: Call) -> None:
    facts = decode("--json", "-D", "200", "--max-tokens", "5", "--ignore-eos").json
    assert facts["output_tokens"] == 5


def test_c14_the_seed_matters_at_temperature_1_only(decode: Call) -> None:
    def outputs(temperature: str) -> set[tuple[int, ...]]:
        flags = ("--json", "--no-lossless", "--ignore-eos", "--temperature", temperature)
        found = (decode(*flags, "--seed", str(seed)).json["output_ids"] for seed in range(3))
        return {tuple(ids) for ids in found}

    assert len(outputs("0")) == 1
    assert len(outputs("1")) == 3


def test_c4_a_run_repeated_gives_the_same_ids(decode: Call) -> None:
    flags = ("--json", "--temperature", "1", "--seed", "5", "--no-lossless")
    assert decode(*flags).json["output_ids"] == decode(*flags).json["output_ids"]


def test_a13_both_denominators_are_given_and_named(decode: Call) -> None:
    facts = decode("--json").json
    decode_only, whole = (
        facts["tokens_per_second_decode"],
        facts["tokens_per_second_with_prefill"],
    )
    assert decode_only > whole > 0


def test_a2_a_drafter_that_finds_nothing_says_so(decode: Call) -> None:
    distinct = "abcdefghijklmnopqrstuvwxyz0123456789"
    outcome = decode(
        "--raw", "--prompt", distinct, "--ngram-min", "5", "--ngram-max", "6", "--max-tokens", "8"
    )
    assert "No proposals" in outcome.out
    assert "0 of 0 drafted tokens accepted (n/a)" in outcome.out


def test_the_chat_template_is_applied_unless_raw_text_is_asked_for(decode: Call) -> None:
    chat, raw = decode("--json").json, decode("--json", "--raw").json
    assert chat["chat_template"] is True
    assert raw["chat_template"] is False
    assert raw["prompt_tokens"] == len("abcabcabc") < chat["prompt_tokens"]


def test_rounds_are_shown_with_signs_and_without_colour_codes_in_a_pipe(decode: Call) -> None:
    out = decode("--ignore-eos").out
    assert "+ accepted" in out
    assert "\x1b" not in out
    assert any(sign in out for sign in ("+[", "x[", "=[", ">[", "*["))


def test_progress_goes_to_standard_error_alone(decode: Call) -> None:
    outcome = decode("--json")
    assert outcome.out.count("\n") == 1
    assert outcome.err


def test_the_prompt_may_come_from_a_file(decode: Call, tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text("abcabcabc", encoding="utf-8")
    assert (
        decode("--json", "--prompt-file", str(file)).json["output_ids"]
        == (decode("--json").json["output_ids"])
    )


def test_a_logit_bias_of_minus_infinity_forbids_the_token(decode: Call) -> None:
    first = decode("--json").json["output_ids"][0]
    facts = decode("--json", "--logit-bias", f"{first}=-inf").json
    assert first not in facts["output_ids"]


def test_a_reader_that_goes_away_is_no_error(model: Path) -> None:
    command = (
        f"{sys.executable} -m specviz run --model {model} --dtype float32 --device cpu "
        "--prompt abcabc --ignore-eos --max-tokens 200 --no-lossless | head -n 1"
    )
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_an_interrupted_run_shows_and_saves_what_was_done(
    decode: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specviz.session import DecodeSession
    from specviz.traces.store import load

    step = DecodeSession.step

    def interrupted(self: DecodeSession, forced: int | None = None) -> object:
        if len(self.rounds) == 3:
            raise KeyboardInterrupt
        return step(self, forced)

    monkeypatch.setattr(DecodeSession, "step", interrupted)
    file = tmp_path / "run.json"
    outcome = decode("--json", "--ignore-eos", "--trace", str(file))
    assert outcome.status == 130
    assert outcome.json["rounds"] == 3
    assert outcome.json["finish_reason"] == "cancelled"
    assert len(load(file).rounds) == 3


def test_the_prompt_may_come_from_standard_input(
    decode: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("abcabcabc"))
    piped = decode("--json", "--prompt-file", "-").json["output_ids"]
    assert piped == decode("--json").json["output_ids"]

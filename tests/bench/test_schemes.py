"""Schemes at their best draft length: chosen, compared with plain decoding, kept through kills."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from specviz.bench import schemes_report as reports
from specviz.bench.runner import environment
from specviz.bench.schemes import Entry, Plan, Suite, best_lengths
from specviz.bench.schemes_record import PLAIN, Head, Record, Sample, Visit, pool
from specviz.bench.specbench import BenchPrompt
from specviz.config import DrafterOptions, SamplingParams
from specviz.errors import ConfigError, PromptError
from specviz.events import Timing
from specviz.metrics import summarise
from specviz.models.load import Loaded, load
from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, write_head

PROMPTS = (
    BenchPrompt("1", "writing", "abc"),
    BenchPrompt("2", "qa", "Who?"),
    BenchPrompt("3", "qa", "xyxyxyxy"),
)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = write_model(tmp_path_factory.mktemp("models") / "deep", layers=LAYERS)
    return load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def plan(deep: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    head = write_head("eagle3", tmp_path_factory.mktemp("heads") / "eagle3")
    untrained = DrafterOptions(head=str(head))
    return Plan(
        prompts=PROMPTS,
        entries=(
            Entry(
                label="itself",
                scheme="draft_model",
                lengths=(1, 3),
                options=DrafterOptions(draft_model=deep.spec),
            ),
            Entry(label="untrained", scheme="eagle3", lengths=(2,), options=untrained),
        ),
        params=SamplingParams(max_tokens=12, ignore_eos=True),
        repeats=2,
        probes=2,
    )


def head_of(suite: Suite) -> Head:
    return Head(
        plan=suite.plan.as_json(),
        model=suite.loaded.target.config.name,
        sha=suite.loaded.target.config.sha,
        drafts=suite.drafts,
        environment=environment(suite.loaded),
        date="2026-01-02",
        load=None,
    )


def silent(what: str) -> None:
    """Tell nobody."""


@pytest.fixture(scope="module")
def done(deep: Loaded, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Record:
    suite = Suite(deep, plan)
    record = Record(tmp_path_factory.mktemp("bench") / "new" / "a.jsonl", head_of(suite))
    suite.run(record, silent)
    return record


def test_each_visit_decodes_plainly_and_with_every_scheme(plan: Plan, done: Record) -> None:
    assert len(done.visits) == plan.visits == 2 + 3 * 2
    assert sum(len(visit.samples) for visit in done.visits) == plan.decodes
    firsts = {visit.samples[1].label for visit in done.visits if visit.phase == "full"}
    assert firsts == {"itself", "untrained"}  # they take turns
    assert all(visit.samples[0].label == PLAIN for visit in done.visits)


def test_a_draft_model_that_is_the_target_accepts_all_and_an_untrained_head_is_called_dead(
    plan: Plan, done: Record
) -> None:
    found = reports.results(plan, done)
    best = best_lengths(plan, done.visits)["itself"]
    row = found.of("itself")
    assert row.draft_length == best
    assert row.summary.acceptance_rate == 1
    assert row.summary.acceptance_length == pytest.approx(best + 1, rel=0.3)  # the end cuts
    assert row.lossless == {"identical": 6}
    assert row.speedup.n == plan.repeats
    worthless = found.of("untrained")
    assert worthless.summary.acceptance_length == pytest.approx(1, abs=0.1)
    assert {alarm.kind for alarm in worthless.alarms} >= {"dead", "slower"}
    assert worthless.lossless == {"identical": 6}
    assert found.of("itself", "qa").summary.rounds < row.summary.rounds


class Killed(BaseException):
    """Stands for a kill."""


def killer(after: int) -> Callable[[str], None]:
    said = 0

    def tell(what: str) -> None:
        nonlocal said
        said += what.startswith(("probe", "full"))
        if said > after:
            raise Killed

    return tell


def test_a_killed_measurement_goes_on_where_it_was(
    deep: Loaded, plan: Plan, tmp_path: Path
) -> None:
    suite, path = Suite(deep, plan), tmp_path / "b.jsonl"
    with pytest.raises(Killed):
        suite.run(Record(path, head_of(suite)), killer(3))
    with path.open("a") as file:
        file.write('{"phase": "full", "pro')
    later = replace(head_of(suite), date="2026-01-03")
    record = Record(path, later)
    assert (len(record.visits), record.head.date) == (3, "2026-01-02")
    first = path.read_text().splitlines()[:4]
    suite.run(record, silent)
    assert path.read_text().splitlines()[:4] == first
    again = Record(path, later)
    assert [one.key for one in again.visits] == [one.key for one in record.visits]
    assert len({visit.key for visit in again.visits}) == plan.visits


def test_a_file_of_another_measurement_is_refused(deep: Loaded, plan: Plan, done: Record) -> None:
    other = Suite(deep, replace(plan, repeats=3))
    with pytest.raises(ConfigError, match="another measurement"):
        Record(done.path, head_of(other))
    text = done.path.parent / "notes.txt"
    text.write_text("not of ours\n{}\n")
    with pytest.raises(ConfigError, match="another measurement"):
        Record(text, head_of(other))


def made(label: str, length: int, seconds: float, tokens: int = 10) -> Sample:
    from tests.traces.samples import ROUNDS

    summary = replace(summarise(ROUNDS), output_tokens=tokens)
    return Sample(
        label=label,
        draft_length=length,
        seconds=seconds,
        prefill=0.1,
        stop="length",
        lossless="identical",
        busy=False,
        summary=summary,
    )


def visit(phase: str, prompt: str, repeat: int, *samples: Sample) -> Visit:
    return Visit(phase=phase, prompt=prompt, kind="qa", repeat=repeat, samples=samples)  # type: ignore[arg-type]


def test_the_fastest_length_is_the_best_and_speed_is_over_the_plain_decode_beside_it(
    plan: Plan, done: Record
) -> None:
    entry = Entry(label="a", scheme="ngram", lengths=(1, 2))
    small = replace(plan, prompts=PROMPTS[1:], entries=(entry,), repeats=2, probes=1)
    record = Record(done.path, done.head)
    record.visits = [
        visit("probe", "2", 0, made(PLAIN, 0, 1.0), made("a", 1, 0.9), made("a", 2, 0.8)),
        visit("full", "2", 0, made(PLAIN, 0, 1.0), made("a", 2, 0.5)),
        visit("full", "3", 0, made(PLAIN, 0, 3.0), made("a", 2, 1.5)),
        visit("full", "2", 1, made(PLAIN, 0, 1.0), made("a", 2, 0.5)),
        visit("full", "3", 1, made(PLAIN, 0, 3.0), made("a", 2, 0.5)),
    ]
    found = reports.results(small, record)
    row = found.of("a")
    assert (row.draft_length, row.speedup.low, row.speedup.high) == (2, 2.0, 4.0)
    assert row.by_prompt == (2.0, 2.0, 3.0)
    assert row.with_prefill == pytest.approx(8.4 / 3.4)
    assert found.busy  # 1.5 s and 0.5 s for the same work
    assert "BUSY MACHINE" in reports.as_text(found)


def test_the_tables_name_classes_and_have_even_lines(plan: Plan, done: Record) -> None:
    found = reports.results(plan, done)
    text = reports.as_text(found, markdown=True)
    for word in ("mt_bench", "qa", "E[L]", "lossless", "2026-01-02", "float32", "Dead drafter"):
        assert word in text
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) == 3
    for block in blocks:
        assert len({line.count("|") for line in block}) == 1
    known = json.loads(reports.as_json(found))
    assert {row["label"] for row in known["rows"]} == {PLAIN, "itself", "untrained"}


def test_pooled_counts_are_those_of_all_rounds_in_one() -> None:
    from tests.traces.samples import ROUNDS

    parts = [summarise(ROUNDS[:2]), summarise(ROUNDS[2:])]
    whole = summarise(ROUNDS)
    pooled = pool(parts)
    assert replace(pooled, timing=Timing()) == replace(whole, timing=Timing())
    assert pooled.timing.total == pytest.approx(whole.timing.total)


def test_what_cannot_be_run_is_told_before_anything_is_measured(deep: Loaded, plan: Plan) -> None:
    long = replace(plan, prompts=(*PROMPTS, BenchPrompt("4", "rag", "word " * 200)))
    with pytest.raises(PromptError, match="context"):
        Suite(deep, long)
    bare = Entry(label="draft_model", scheme="draft_model", lengths=(1,))
    with pytest.raises(ConfigError, match="no draft model"):
        Suite(deep, replace(plan, entries=(bare,)))
    with pytest.raises(ConfigError, match="each one once"):
        replace(plan, entries=(bare, bare))


def test_sampled_runs_are_not_compared_token_by_token(
    deep: Loaded, plan: Plan, tmp_path: Path
) -> None:
    warm = replace(plan, params=replace(plan.params, temperature=0.8, max_tokens=6), repeats=1)
    suite = Suite(deep, replace(warm, prompts=PROMPTS[:1], probes=1))
    record = Record(tmp_path / "c.jsonl", head_of(suite))
    suite.run(record, silent)
    assert {sample.lossless for one in record.visits for sample in one.samples} == {"sampled"}

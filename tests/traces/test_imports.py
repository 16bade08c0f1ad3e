"""Other engines' own words, exactly as they write them; what they leave out stays empty."""

import json

import pytest

from specviz.errors import TraceError
from specviz.traces import imports
from specviz.traces.imports import EngineRun, derived, read


def only(text) -> EngineRun:
    (run,) = read(text if isinstance(text, str) else json.dumps(text))
    return run


def test_the_line_of_llama_cpp_keeps_every_number():
    run = only(
        "draft acceptance = 0.64479 (167 accepted / 259 generated), mean acceptance length = 2.92, "
        "acceptance rate per position = (0.805, 0.632, 0.483)"
    )
    assert (run.engine, run.accepted, run.drafted) == ("llama.cpp", 167, 259)
    assert run.acceptance_rate == 0.64479
    assert run.acceptance_length == 2.92
    assert run.per_position == (0.805, 0.632, 0.483)
    assert run.contradictions == ()  # 1 + 0.805 + 0.632 + 0.483 = 2.92
    assert (run.rounds, run.output_tokens, run.draft_length) == (None, None, None)


@pytest.mark.parametrize(
    ("line", "accepted", "drafted"),
    [
        ("draft acceptance = 0.29825 (51 accepted / 171 generated), mean len = 1.9", 51, 171),
        ("slot 0: draft acceptance rate = 0.93939 (   31 accepted /    33 generated)", 31, 33),
    ],
)
def test_older_lines_of_llama_cpp_are_read_too(line, accepted, drafted):
    run = only(line)
    assert (run.accepted, run.drafted) == (accepted, drafted)
    assert run.per_position == ()
    assert run.contradictions == ()


def test_a_trace_line_of_llama_cpp_gives_positions_alone():
    run = only("acc per pos = (0.696, 0.445, 0.326, 0.212)")
    assert run.per_position == (0.696, 0.445, 0.326, 0.212)
    assert run.acceptance_length is None
    assert derived(run) == ()


def test_statistics_of_llama_cpp_name_the_drafter():
    run = only(
        "statistics draft-mtp: #calls(b,g,a) = 3 90 80, #gen drafts = 90, #acc drafts = 80, "
        "#gen tokens = 270, #acc tokens = 167"
    )
    assert (run.rounds, run.drafted, run.accepted) == (90, 270, 167)
    assert "draft-mtp" in run.about


def test_the_response_of_llama_cpp_has_timings():
    run = only(
        {"content": "x", "timings": {"predicted_n": 100, "draft_n": 81, "draft_n_accepted": 30}}
    )
    assert (run.engine, run.drafted, run.accepted, run.output_tokens) == ("llama.cpp", 81, 30, 100)
    assert run.acceptance_rate is None
    assert [(d.name, round(d.value, 4)) for d in derived(run)] == [("acceptance_rate", 0.3704)]


VLLM = (
    "INFO 09-01 12:00:00 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 2.92, "
    "Accepted throughput: 16.70 tokens/s, Drafted throughput: 26.10 tokens/s, "
    "Accepted: 167 tokens, Drafted: 261 tokens, Per-position acceptance rate: 0.805, 0.632, 0.483, "
    "Avg Draft acceptance rate: 64.0%"
)


def test_the_log_line_of_vllm_keeps_every_number():
    run = only(VLLM)
    assert (run.engine, run.accepted, run.drafted) == ("vLLM", 167, 261)
    assert run.acceptance_length == 2.92
    assert run.acceptance_rate == 0.64
    assert run.per_position == (0.805, 0.632, 0.483)
    assert dict(run.said)["Accepted throughput"] == "16.70 tokens/s"
    assert run.contradictions == ()


def test_a_log_with_other_lines_yields_one_run_for_each_line_about_drafts():
    runs = read(f"starting\n{VLLM}\nsomething else\n{VLLM}\n")
    assert [run.about for run in runs] == ["line 2 of the text", "line 4 of the text"]


PAGE = """# HELP vllm:spec_decode_num_drafts_total Number of rounds.
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 192.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 80.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 63.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="2"} 49.0
"""


@pytest.mark.parametrize(("engine", "prefix"), [("vLLM", "vllm:"), ("llama.cpp", "llamacpp:")])
def test_counters_give_rates_per_position_by_rounds(engine, prefix):
    run = only(PAGE.replace("vllm:", prefix))
    assert (run.engine, run.rounds, run.drafted, run.accepted) == (engine, 100, 300, 192)
    assert run.per_position == (0.80, 0.63, 0.49)
    assert {d.name: d.value for d in derived(run)} == {
        "acceptance_rate": 0.64,
        "acceptance_length": 2.92,
    }


def test_counters_without_rounds_give_no_rate_per_position():
    run = only(
        "trtllm_spec_decode_num_draft_tokens_total 30\n"
        "trtllm_spec_decode_num_accepted_tokens_total 12\n"
        'trtllm_spec_decode_accepted_tokens_total{token_position="0"} 9\n'
    )
    assert (run.engine, run.drafted, run.accepted, run.rounds) == ("TensorRT-LLM", 30, 12, None)
    assert run.per_position == ()
    assert ("trtllm_spec_decode_accepted_tokens[0]", "9") in run.said


def test_gauges_of_sglang_are_of_the_last_interval_with_their_own_denominator():
    run = only("sglang:spec_accept_length 2.7\nsglang:spec_accept_rate 0.425\n")
    assert (run.acceptance_length, run.acceptance_rate) == (2.7, 0.425)
    assert "num_draft_tokens - 1" in run.rate_means
    assert run.about == "the last interval"


def test_the_log_line_of_sglang():
    run = only(
        "[12:00] Decode batch. #running-req: 1, accept len: 3.12, accept rate: 0.53, cap len: 4.0"
    )
    assert (run.engine, run.acceptance_length, run.acceptance_rate) == ("SGLang", 3.12, 0.53)
    assert ("cap len", "4.0") in run.said
    assert (run.accepted, run.drafted) == (None, None)


def test_meta_info_of_sglang():
    run = only(
        {
            "text": "…",
            "meta_info": {
                "completion_tokens": 111,
                "spec_verify_ct": 30,
                "spec_num_correct_drafts": 81,
                "spec_num_proposed_drafts": 90,
                "spec_accept_length": 3.7,
                "spec_correct_drafts_histogram": [1, 2, 2, 25],
            },
        }
    )
    assert (run.rounds, run.accepted, run.drafted, run.output_tokens) == (30, 81, 90, 111)
    assert run.histogram == (1, 2, 2, 25)
    assert run.contradictions == ()


def test_detailed_metrics_of_a_vllm_response_keep_every_round():
    """vllm-project/vllm#48202: drafts of changing length in one request."""
    drafted = [7, 4, 0, 7, 2, 1, 0, 0]
    run = only(
        {
            "metrics": {
                "speculative_decoding": {
                    "mean_acceptance_length": 2.5,
                    "draft_acceptance_rate": 12 / 21,
                    "acceptance_histogram": [4, 0, 2, 0, 2],
                    "num_spec_steps": 8,
                    "num_accepted_draft_tokens": 12,
                    "num_draft_tokens": 21,
                    "num_spec_tokens": 7,
                    "per_step_accepted": [4, 4, 0, 2, 2, 0, 0, 0],
                    "per_step_drafted": drafted,
                }
            }
        }
    )
    assert run.drafted_by_round == tuple(drafted)
    assert (run.rounds, run.accepted, run.drafted, run.draft_length) == (8, 12, 21, 7)
    assert run.contradictions == ()


def test_h7_accepted_and_rounds_add_up_to_the_output():
    """Blaizzy/mlx-vlm#1788: 81 accepted and 30 rounds are 111 tokens."""
    run = only({"draft_kind": "mtp", "rounds": 30, "n": 111, "accepted": 81})
    assert run.contradictions == ()
    assert only({"draft_kind": "mtp", "rounds": 30, "n": 150, "accepted": 81}).contradictions


def test_iteration_statistics_of_tensorrt_llm():
    stats = {
        "specDecodingStats": {
            "numDraftTokens": 12,
            "numAcceptedTokens": 6,
            "numRequestsWithDraftTokens": 4,
            "acceptanceLength": 2.5,
            "iterLatencyMS": 9.1,
            "draftOverhead": 0.2,
        }
    }
    runs = read("\n".join(json.dumps(stats) for _n in range(3)))
    assert len(runs) == 3
    assert (runs[0].rounds, runs[0].accepted, runs[0].acceptance_length) == (4, 6, 2.5)


def test_the_recorder_of_tensorrt_llm_is_counted_from_its_histogram():
    run = only({"accepted_draft_hist": [5, 3, 2], "per_request": {"1": {"steps": 10}}})
    assert (run.rounds, run.accepted, run.draft_length) == (10, 7, 2)


def test_flags_of_mlx_lm_say_which_tokens_came_from_the_draft():
    run = only([{"token": 1, "from_draft": True}, {"token": 2, "from_draft": False}])
    assert run.from_draft == (True, False)
    assert (run.rounds, run.drafted, run.acceptance_length) == (None, None, None)


def test_lm_studio_counts():
    run = only({"stats": {"acceptedDraftTokensCount": 20, "predictedTokensCount": 50}})
    assert (run.accepted, run.output_tokens, run.drafted) == (20, 50, None)


def test_server_information_of_sglang_is_cumulative():
    run = only({"avg_spec_accept_length": 2.31})
    assert run.acceptance_length == 2.31
    assert "since its start" in run.about


def test_numbers_that_contradict_each_other_are_kept_and_said():
    run = only(VLLM.replace("length: 2.92", "length: 3.50").replace("64.0%", "80.0%"))
    assert run.acceptance_length == 3.5
    assert len(run.contradictions) == 2


@pytest.mark.parametrize(
    "text", ["", "hello", "{}", "[]", '{"a": 1}', "{broken", "[" * 50_000, "\x00\xff", "a 1\nb 2"]
)
def test_text_about_something_else_is_refused_with_what_is_allowed(text):
    with pytest.raises(TraceError, match="TensorRT-LLM"):
        read(text)


def test_wrong_types_are_left_out_and_not_guessed():
    run = only(
        {"num_spec_steps": "8", "num_accepted_draft_tokens": True, "acceptance_histogram": ["x"]}
    )
    assert (run.rounds, run.accepted, run.histogram) == (None, None, ())


LONG = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        "SpecDecoding metrics: Mean acceptance length: abc, Avg Draft acceptance rate: nan%",
        f"SpecDecoding metrics: Accepted: {LONG} tokens, Drafted: 3 tokens",
        f"draft acceptance = {LONG} ({LONG} accepted / {LONG} generated)",
        "acc per pos = (0.5, 1.2.3)",
        "vllm:spec_decode_num_drafts_total 1e400\nvllm:spec_decode_num_draft_tokens_total 3",
        "vllm:spec_decode_num_drafts_total 1.2.3\nvllm:spec_decode_num_draft_tokens_total 1e300",
        '{"num_spec_steps": 2, "num_accepted_draft_tokens": -1, "mean_acceptance_length": NaN}',
        f'{{"spec_verify_ct": 1, "spec_accept_length": {LONG[:400]}}}',
        '{"schema_version": 1, "marginal_accept_rates": [0.5, null],'
        ' "acceptance_length_histogram": {"\u00b2": 1, "99999999999": 1, "3": 2}}',
    ],
)
def test_numbers_that_are_none_stay_empty_and_the_rest_is_read(text):
    run = only(text)
    shown = json.dumps([imports.as_json(run), imports.facts(run)], allow_nan=False)
    assert "9" * 30 not in shown.replace(json.dumps(dict(run.said))[1:-1], "")
    assert not run.per_position or all(0 <= rate <= 1 for rate in run.per_position)
    assert len(run.histogram) < 10


def test_no_field_is_filled_that_was_not_given():
    run = only({"avg_spec_accept_length": 2.0})
    assert imports.facts(run) == [("acceptance_length", "2")]


@pytest.mark.parametrize("text", [VLLM, PAGE, '{"draft_kind":"mtp","rounds":3,"n":9,"accepted":6}'])
def test_a_run_that_was_saved_reads_back_as_it_was(text):
    run = only(text)
    assert only([imports.as_json(run)]) == run

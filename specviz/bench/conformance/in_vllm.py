"""Decode the prompts of a job with vLLM and write its counters: run by the interpreter of vLLM.

It knows nothing of specviz, which is not installed there. Usage: in_vllm.py JOB RESULT
"""

import json
import os
import sys
from pathlib import Path

SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
}
COUNTER = "vllm:spec_decode_num_"


def main(job_file: str, result_file: str) -> None:
    """Decode prompt by prompt, so that the counters can be told apart."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    from vllm import LLM, SamplingParams, TokensPrompt  # type: ignore[import-not-found]

    job = json.loads(Path(job_file).read_text("utf-8"))
    llm = LLM(
        model=job["target"],
        dtype=job["dtype"],
        enforce_eager=True,
        max_num_seqs=1,
        max_model_len=job["context"],
        enable_prefix_caching=False,
        disable_log_stats=False,
        speculative_config=job["speculative"],
    )
    params = SamplingParams(temperature=0.0, max_tokens=job["tokens"], detokenize=False)
    before, results = _counters(llm), []
    for number, prompt in enumerate(job["prompts"], 1):
        [out] = llm.generate(TokensPrompt(prompt_token_ids=prompt), params, use_tqdm=False)
        after = _counters(llm)
        counted = {name: _less(after[name], before.get(name)) for name in after}
        results.append({"output": list(out.outputs[0].token_ids), **counted})
        before = after
        sys.stderr.write(f"vLLM: prompt {number} of {len(job['prompts'])}\n")
        Path(result_file).write_text(json.dumps({"results": results}), "utf-8")


def _counters(llm: "LLM") -> "dict[str, int | list[int]]":  # type: ignore[name-defined]  # noqa: F821
    """Return drafts, draft_tokens, accepted_tokens and accepted_tokens_per_pos so far."""
    found = {}
    for metric in llm.get_metrics():
        if metric.name.startswith(COUNTER):
            values = getattr(metric, "values", None)
            found[metric.name.removeprefix(COUNTER)] = metric.value if values is None else values
    return found


def _less(after: "int | list[int]", before: "int | list[int] | None") -> "int | list[int]":
    if isinstance(after, list):
        old = before if isinstance(before, list) else [0] * len(after)
        return [new - was for new, was in zip(after, old, strict=True)]
    return after - (before if isinstance(before, int) else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

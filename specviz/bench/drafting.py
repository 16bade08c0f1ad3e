"""What a draft costs: CPU time and operations of each scheme's `propose`, beside those of a pass.

`python -m specviz.bench.drafting` measures what is shipped for the embedded model.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import process_time_ns
from typing import TypeVar

import torch

from specviz.bench.drafts import load_draft
from specviz.bench.prompts import BUILT_IN
from specviz.bench.runner import Request, open_session
from specviz.bench.spread import Spread
from specviz.config import DrafterOptions, SamplingParams, SessionConfig, require
from specviz.drafters.base import Context, Proposal
from specviz.models.load import Loaded
from specviz.session import DecodeSession

SCHEMES: dict[str, SessionConfig] = {
    label: SessionConfig(scheme=scheme, draft_length=length, detail="off", options=options)
    for label, scheme, length, options in (
        ("draft_model", "draft_model", 2, DrafterOptions()),
        ("eagle3", "eagle3", 3, DrafterOptions()),
        ("eagle3 tree", "eagle3", 10, DrafterOptions(tree_depth=4, tree_top_k=4)),
        ("mtp", "mtp", 2, DrafterOptions()),
        ("dflash", "dflash", 3, DrafterOptions()),
        ("dspark", "dspark", 2, DrafterOptions()),
        ("ngram", "ngram", 5, DrafterOptions()),
    )
}
COUNTED = 4  # rounds after the others in which operations are counted, not timed
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds of CPU time in a round, all threads added up; operations of torch in a draft."""

    scheme: str
    draft_length: int
    draft: Spread
    score: Spread
    verify: Spread
    operations: float
    committed: float  # tokens of a round


class _Timed:
    """Measures parts of a session's rounds; the first rounds set things up and do not count."""

    def __init__(self, session: DecodeSession) -> None:
        self.seconds: dict[str, list[float]] = {"draft": [], "score": [], "verify": []}
        self.operations: list[int] | None = None
        self._drafter, self.name = session.drafter, session.drafter.name
        session.drafter = self
        session.target.score = self._timed("score", session.target.score)  # type: ignore[method-assign]
        session._verify = self._timed("verify", session._verify)  # type: ignore[method-assign]

    def propose(self, context: Context, budget: int) -> Proposal:
        if self.operations is None:
            return self._timed("draft", self._drafter.propose)(context, budget)
        with torch.profiler.profile() as seen:
            proposal = self._drafter.propose(context, budget)
        self.operations.append(sum("::" in event.name for event in seen.events() or ()))
        return proposal

    def _timed(self, part: str, call: Callable[..., T]) -> Callable[..., T]:
        def timed(*given: object) -> T:
            began = process_time_ns()
            found = call(*given)
            self.seconds[part].append((process_time_ns() - began) / 1e6)
            return found

        return timed


def measure(loaded: Loaded, label: str, config: SessionConfig, request: Request) -> Cost:
    """Decode `request` with a scheme; the CPU time excludes what other programs take.

    It still grows while they use the memory and its caches.
    """
    session = open_session(loaded, request, load_draft(loaded, config))
    timed, rounds = _Timed(session), []
    limit = request.params.max_tokens - COUNTED * (1 + config.draft_length)
    while session.finish is None and len(session.output) < limit:
        rounds.append(session.step())
    settled = min(2, len(rounds) - 1)
    spent = {part: Spread.of(found[settled:]) for part, found in timed.seconds.items()}
    timed.operations = []
    while session.finish is None and len(timed.operations) < COUNTED:
        session.step()
    counted = timed.operations
    return Cost(
        scheme=label,
        draft_length=config.draft_length,
        **spent,
        operations=sum(counted) / max(1, len(counted)),
        committed=sum(len(one.committed) for one in rounds) / len(rounds),
    )


def as_text(costs: Sequence[Cost]) -> str:
    """Return a table: medians, and for drafts the lowest and highest."""
    lines = [
        "| scheme | D | draft, CPU ms | operations | score, CPU ms | verify, CPU ms | E[L] |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {c.scheme} | {c.draft_length} | {c.draft.text(2)} | {c.operations:.0f} "
        f"| {c.score.median:.1f} | {c.verify.median:.2f} | {c.committed:.2f} |"
        for c in costs
    ]
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m specviz.bench.drafting", description=__doc__)
    parser.add_argument("--model", help="folder, GGUF file or hub id; default: the embedded model")
    parser.add_argument("--schemes", default=",".join(SCHEMES), metavar="S")
    parser.add_argument("--prompt", default=BUILT_IN[0].text)
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)
    from specviz.models.load import load

    loaded, costs = load(args.model, dtype=args.dtype), []
    params = SamplingParams(
        temperature=args.temperature, max_tokens=args.max_tokens, ignore_eos=True
    )
    unknown = sorted(set(args.schemes.split(",")).difference(SCHEMES))
    require(not unknown, "schemes", ", ".join(unknown), ", ".join(SCHEMES))
    for label in args.schemes.split(","):
        sys.stderr.write(f"\r{label}\033[K")
        request = Request(prompt=args.prompt, params=params, config=SCHEMES[label])
        costs.append(measure(loaded, label, SCHEMES[label], request))
    sys.stderr.write("\r\033[K")
    dtype = str(loaded.target.dtype).removeprefix("torch.")
    head = f"{dtype}, {torch.get_num_threads()} threads, {args.max_tokens} tokens"
    found = {"measured": head, "costs": [asdict(cost) for cost in costs]}
    sys.stdout.write((json.dumps(found) if args.json else f"{head}\n\n{as_text(costs)}") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

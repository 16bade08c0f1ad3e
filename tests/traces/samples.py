"""Hand-made runs: every number can be checked by eye."""

import random

from specviz.config import SamplingParams, SessionConfig
from specviz.events import (
    Candidate,
    Check,
    Draft,
    Evidence,
    Finish,
    LosslessReport,
    NodeScore,
    Round,
    Row,
    Timing,
)
from specviz.traces.schema import Environment, ModelCard, Trace, shown_tokens

PROMPT = (5, 6, 7)
ENVIRONMENT = Environment(
    device="cpu",
    device_name="a test",
    dtype="float32",
    threads=1,
    python="3.11.2",
    torch="2.13.0",
    transformers="5.24.0",
    specviz="0.1.0",
    platform="linux",
)
CARD = ModelCard(
    name="tiny",
    sha="",
    layers=2,
    hidden=32,
    heads=6,
    kv_heads=2,
    head_dim=8,
    vocab=64,
    context=512,
)


def chain_round(drafted, accepted, last, *, start=3, index=0, past=0, budget=4, **more):
    """A greedy chain: `accepted` nodes kept, `past` more beyond the end, the next one refused."""
    stand = accepted + past
    checks = tuple(
        Check(node, float(node < stand), 1.0, float(node < stand), None, node < stand)
        for node in range(min(stand + (last is not None), len(drafted)))
    )
    kind = "plain" if not drafted else "bonus" if stand == len(drafted) else "recovered"
    return Round(
        **{
            "index": index,
            "start": start,
            "scheme": "ngram",
            "budget": budget,
            "draft": Draft.chain(drafted),
            "path": tuple(range(accepted)),
            "last_token": last,
            "last_kind": kind,
            "past_end": tuple(range(accepted, stand)),
            "checks": checks,
            "timing": Timing(0.01, 0.04, 0.02, 0.01, 0.005, 0.095),
            "began": 0.1 * index,
        }
        | more
    )


def story(*rounds, start=3):
    """Rounds given as (drafted, accepted, last), one after the other."""
    done = []
    for index, (drafted, accepted, last, *more) in enumerate(rounds):
        extra = more[0] if more else {}
        done.append(chain_round(drafted, accepted, last, start=start, index=index, **extra))
        start += done[-1].acceptance_length
    return tuple(done)


# 8 tokens in 4 rounds: two of three accepted, nothing found, all rejected, all accepted.
ROUNDS = story(([1, 2, 3], 2, 9), ([], 0, 8), ([4, 5], 0, 7), ([1, 2], 2, 3))
OUTPUT = (1, 2, 9, 8, 7, 1, 2, 3)


def trace_of(rounds=ROUNDS, prompt=PROMPT, **more):
    ids = shown_tokens(prompt, rounds, more.get("lossless"))
    return Trace(
        **{
            "run_id": "run-1",
            "created": "2026-09-01T12:00:00Z",
            "title": "a copy task",
            "environment": ENVIRONMENT,
            "target": CARD,
            "params": SamplingParams(max_tokens=8, logit_bias=((3, float("-inf")), (4, 0.5))),
            "config": SessionConfig(scheme="ngram"),
            "chat": True,
            "prompt_text": "copy this",
            "prompt": prompt,
            "pieces": {token: bytes([token % 256, 255]) for token in ids},
            "rounds": rounds,
            "prefill_seconds": 0.125,
            "finish": Finish("length", "8 tokens asked for"),
            "lossless": LosslessReport("identical", compared=8, worst_gap=0.0, plain_tpot=0.05),
        }
        | more
    )


def sampled_round(random_, start, index, vocab=64, depth=4, bars=10):
    """Full detail with noisy numbers, as a real sampled run has."""
    tokens = [random_.randrange(vocab) for _ in range(depth)]
    checks, path = [], []
    for node in range(depth):
        p, q, u = random_.random(), random_.random(), random_.random()
        checks.append(Check(node, p, q, min(1.0, p / q), u, u * q < p))
        if not checks[-1].accepted:
            break
        path.append(node)

    def bar():
        p = random_.random()
        return Candidate(random_.randrange(vocab), p, random_.random(), -random_.random() * 20)

    return Round(
        index=index,
        start=start,
        scheme="draft_model",
        budget=depth,
        draft=Draft.chain(tokens),
        path=tuple(path),
        last_token=random_.randrange(vocab),
        last_kind="bonus" if len(path) == depth else "recovered",
        checks=tuple(checks),
        q_kind="full",
        evidence=Evidence(scores=tuple(random_.random() for _ in tokens), passes=depth),
        timing=Timing(*(random_.random() / 100 for _ in range(5)), total=0.06),
        began=index * 0.06,
        last_p=random_.random(),
        last_logprob=-random_.random(),
        last_u=random_.random(),
        nodes=tuple(
            NodeScore(random_.random(), random_.random(), -random_.random(), random_.randrange(9))
            for _ in tokens
        ),
        rows=tuple(
            Row(
                random_.randrange(vocab),
                random_.random() * 5,
                random_.random(),
                tuple(bar() for _ in range(bars)),
            )
            for _ in range(depth + 1)
        ),
    )


def sampled_trace(rounds, seed=0, **more):
    random_ = random.Random(seed)
    done, start = [], len(PROMPT)
    for index in range(rounds):
        done.append(sampled_round(random_, start, index))
        start += done[-1].acceptance_length
    params = SamplingParams(temperature=1.0, max_tokens=100_000, seed=seed)
    return trace_of(tuple(done), params=params, lossless=None, **more)

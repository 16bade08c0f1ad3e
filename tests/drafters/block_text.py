"""Whole texts from block drafters on a target of four tokens, against exact probabilities."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import product

import torch
from scipy.stats import chisquare
from torch import Tensor

from specviz.config import SamplingParams
from specviz.drafters.base import Context, Drafter
from specviz.events import EMPTY
from specviz.verify import Draws, verify_block, verify_sampled
from tests.heads.block_heads import tiny_target

VOCAB, LENGTH, BUDGET = 4, 2, 3
PROMPT = (0, 2, 1)
SMALL: dict[str, object] = {"vocab": VOCAB, "draft_vocab": VOCAB, "mask_token": 3}
PARAMS = SamplingParams(temperature=8.0)  # flat enough that every text is seen
RULES = {"sampled": verify_sampled, "block": verify_block}

TARGET = tiny_target(vocab=VOCAB)


@lru_cache(maxsize=4096)
def after(text: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """p [vocab] after `text`, and the features of all its tokens but the last."""
    TARGET.truncate(0)
    TARGET.prefill(text[:-1])
    features = TARGET.features
    assert features is not None
    return TARGET.score(text[-1], EMPTY)[0].div(PARAMS.temperature).softmax(-1), features.clone()


def decode(drafter: Drafter, rule: str, seed: int) -> list[int]:
    """The loop of a session without its records."""
    tokens = PROMPT
    while len(tokens) < len(PROMPT) + LENGTH:
        draws = Draws(seed, len(tokens) if rule == "block" else 0)
        p, features = after(tokens)
        proposal = drafter.propose(Context(tokens, 1, PARAMS, draws, features), BUDGET)
        draft = proposal.draft
        rows = [p, *(after((*tokens, *draft.tokens[: i + 1]))[0] for i in range(len(draft)))]
        verdict = RULES[rule](draft, proposal.probs, torch.stack(rows), draws, len(tokens))
        tokens = (*tokens, *(draft.tokens[i] for i in verdict.path), verdict.last_token)
    return list(tokens[len(PROMPT) :][:LENGTH])


def fits(make: Callable[[], Drafter], rule: str, runs: int = 200) -> float:
    """p-value of the outputs of many seeds against their exact probabilities."""
    drafter, exact = make(), {}
    for text in product(range(VOCAB), repeat=LENGTH):
        mass = 1.0
        for i, token in enumerate(text):
            mass *= float(after((*PROMPT, *text[:i]))[0][token])
        exact[text] = mass
    seen = Counter(tuple(decode(drafter, rule, seed)) for seed in range(runs))
    total = sum(exact.values())
    expected = [runs * mass / total for mass in exact.values()]
    return float(chisquare([seen[text] for text in exact], expected).pvalue)

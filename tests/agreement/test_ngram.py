"""Prompt lookup with the tie rule "transformers" drafts what transformers 5.24 drafts in real runs.

Both copy from the earliest occurrence of the longest match. What differs: theirs also drafts where
no more than one token is asked for, and cuts what it accepted.
"""

import pytest

from specviz.config import DrafterOptions
from specviz.drafters.ngram import NgramDrafter
from tests.agreement.theirs import both, compare, generate, ours

TOKENS, VOCAB = 40, 16
PROMPT = (3, 7, 11, 2, 3, 7, 12, 2, 3, 7, 11, 5, 2, 3)


@pytest.mark.parametrize("family", ["smollm2", "qwen3"])
@pytest.mark.parametrize(("high", "length"), [(2, 10), (3, 4)])
def test_drafts_of_every_round_are_theirs(
    family, high: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    target, reference = both(family, vocab=VOCAB)
    run = generate(
        reference,
        PromptLookupCandidateGenerator,
        PROMPT,
        TOKENS,
        monkeypatch,
        prompt_lookup_num_tokens=length,
        max_matching_ngram_size=high,
    )
    options = DrafterOptions(ngram_min=1, ngram_max=high, ngram_tie="transformers")
    assert compare(ours(target, NgramDrafter(options), PROMPT, TOKENS, length), run) > 4

"""Controls of the meter itself: what should help acceptance, and what must destroy it."""

from collections.abc import Sequence

from specviz.events import ROOT, Draft, Round


def prompt_overlap(prompt: Sequence[int], output: Sequence[int], n: int = 3) -> float | None:
    """Share of the output's n-grams that stood in the context before (vllm#6494).

    The context is the prompt and the output so far. None if the output is shorter than n.
    """
    text = (*prompt, *output)
    first = len(prompt)
    windows = len(output) - n + 1
    if windows < 1:
        return None
    seen = {text[i : i + n] for i in range(first)}  # windows that begin in the prompt
    found = 0
    for i in range(first, first + windows):
        found += text[i : i + n] in seen
        seen.add(text[i : i + n])
    return found / windows


def shifted_acceptance(
    rounds: Sequence[Round], tokens: Sequence[int], shift: int = 1
) -> float | None:
    """Acceptance had every draft been made for `shift` positions later: a negative control.

    `tokens` is prompt and output. Drafts are matched against what was really committed; shift 0
    gives the true rate of a greedy run, shift 1 must collapse (tenstorrent/vllm#442), or the
    meter is broken. Text that repeats one token is the exception.
    """
    matched = drafted = 0
    for r in rounds:
        ahead = tokens[r.start + shift :]
        drafted += len(r.draft)
        matched += matching(r.draft, ahead)
    return matched / drafted if drafted else None


def matching(draft: Draft, text: Sequence[int]) -> int:
    """Depth to which some path of the draft spells the beginning of `text`."""
    node = ROOT
    for depth, token in enumerate(text):
        same = [child for child in draft.children(node) if draft.tokens[child] == token]
        if not same:
            return depth
        node = same[0]
    return len(text)

"""Which draft models may draft for a target: ids must mean the same text in both."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from specviz.errors import VocabMismatch
from specviz.words import _, ngettext


class Vocabulary(Protocol):
    """What token ids mean; a tokenizer, or a list made for a test."""

    @property
    def vocab_size(self) -> int:
        """Ids it gives a meaning to, padding of the model's rows not counted."""
        ...

    def piece(self, token: int) -> bytes:
        """Return the exact bytes of one token."""
        ...


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Whether a draft model may draft, and why (not), in words for people."""

    ok: bool
    reason: str
    first_difference: int | None = None  # the first id with two meanings
    unreachable: int = 0  # ids of the target that the draft model can never propose


@dataclass(frozen=True, slots=True)
class Candidate:
    """A draft model somebody might choose; without vocabulary, `problem` says why it is none."""

    name: str
    vocabulary: Vocabulary | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate and what became of it."""

    candidate: Candidate
    eligibility: Eligibility


def check_vocabulary(target: Vocabulary, draft: Vocabulary) -> Eligibility:
    """Compare id by id, over all ids that both have.

    The same vocabulary, or one that is the beginning of the other, will do: ids at the tail that
    the draft lacks are never proposed, those that the target lacks are cut off.
    """
    sizes = target.vocab_size, draft.vocab_size
    if draft is target:
        return Eligibility(True, _("The same vocabulary."))
    shared = min(sizes)
    different = next((i for i in range(shared) if target.piece(i) != draft.piece(i)), None)
    if different is not None:
        reason = _(
            "Token {id} is {target} in the target and {draft} in the draft model."
            " Vocabulary sizes: {sizes[0]} and {sizes[1]}."
        ).format(
            id=different,
            target=_quoted(target.piece(different)),
            draft=_quoted(draft.piece(different)),
            sizes=sizes,
        )
        return Eligibility(False, reason, different)
    if not shared:
        return Eligibility(False, _("One of the vocabularies is empty."))
    return Eligibility(True, _tails(sizes[0] - shared, sizes[1] - shared), None, sizes[0] - shared)


def eligible_drafts(target: Vocabulary, candidates: Iterable[Candidate]) -> tuple[Choice, ...]:
    """Return every candidate with its reason; none is left out."""

    def choices() -> Iterator[Choice]:
        for candidate in candidates:
            if candidate.vocabulary is None:
                yield Choice(candidate, Eligibility(False, candidate.problem))
            else:
                yield Choice(candidate, check_vocabulary(target, candidate.vocabulary))

    return tuple(choices())


def require_eligible(target: Vocabulary, draft: Vocabulary, name: str) -> Eligibility:
    """Return how the vocabularies compare.

    Raises:
        VocabMismatch: `name` cannot draft for the target.
    """
    found = check_vocabulary(target, draft)
    if not found.ok:
        raise VocabMismatch(
            _(
                "{name} cannot draft for this target. {reason} A draft model needs the target's "
                "own vocabulary: choose one of the same family, or the schemes ngram or suffix, "
                "which need no model."
            ).format(name=name, reason=found.reason)
        )
    return found


def _tails(target_only: int, draft_only: int) -> str:
    if target_only:
        return ngettext(
            "{n} tail id of the target is unreachable by the draft model.",
            "{n} tail ids of the target are unreachable by the draft model.",
            target_only,
        ).format(n=target_only)
    if draft_only:
        return ngettext(
            "{n} tail id of the draft model is unknown to the target and never drafted.",
            "{n} tail ids of the draft model are unknown to the target and never drafted.",
            draft_only,
        ).format(n=draft_only)
    return _("The same vocabulary.")


def _quoted(piece: bytes) -> str:
    """Show the bytes of a token unmistakably."""
    try:
        return repr(piece.decode())
    except UnicodeDecodeError:
        return repr(piece)

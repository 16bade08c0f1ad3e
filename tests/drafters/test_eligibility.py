"""A draft model may draft only where ids mean the same, and it is said why not."""

from dataclasses import dataclass

import pytest

from specviz.drafters.eligibility import (
    Candidate,
    check_vocabulary,
    eligible_drafts,
    require_eligible,
)
from specviz.errors import VocabMismatch


@dataclass(frozen=True)
class Words:
    pieces: tuple[bytes, ...]

    @property
    def vocab_size(self) -> int:
        return len(self.pieces)

    def piece(self, token: int) -> bytes:
        return self.pieces[token]


def words(size: int, **changes: bytes) -> Words:
    pieces = [b"word%d" % i for i in range(size)]
    for at, piece in changes.items():
        pieces[int(at[1:])] = piece
    return Words(tuple(pieces))


def test_d1_sizes_that_differ_with_other_content_are_refused_by_name_and_size():
    found = check_vocabulary(words(64), words(60, _2=b"x"))
    assert not found.ok
    assert found.first_difference == 2
    assert found.reason == (
        "Token 2 is 'word2' in the target and 'x' in the draft model. Vocabulary sizes: 64 and 60."
    )


def test_d1_two_ids_swapped_in_vocabularies_of_one_size_are_found():
    found = check_vocabulary(words(64), words(64, _5=b"word6", _6=b"word5"))
    assert (found.ok, found.first_difference) == (False, 5)
    assert "'word5'" in found.reason
    assert "'word6'" in found.reason


def test_d3_a_shorter_draft_vocabulary_is_accepted_and_the_tail_is_stated():
    found = check_vocabulary(words(64), words(56))
    assert (found.ok, found.unreachable) == (True, 8)
    assert found.reason == "8 tail ids of the target are unreachable by the draft model."


def test_d3_a_longer_draft_vocabulary_is_accepted_and_the_tail_is_stated():
    found = check_vocabulary(words(63), words(64))
    assert (found.ok, found.unreachable) == (True, 0)
    assert found.reason == (
        "1 tail id of the draft model is unknown to the target and never drafted."
    )


def test_d3_one_difference_inside_the_shared_part_refuses():
    found = check_vocabulary(words(64), words(56, _55=b"x"))
    assert (found.ok, found.first_difference) == (False, 55)


def test_equal_vocabularies_are_eligible():
    assert check_vocabulary(words(9), words(9)).ok
    one = words(9)
    assert check_vocabulary(one, one).ok


def test_an_empty_vocabulary_is_not_eligible():
    assert not check_vocabulary(words(9), words(0)).ok


def test_bytes_that_are_no_text_are_shown_as_bytes():
    assert "b'\\xff'" in check_vocabulary(words(3, _0=b"\xff"), words(3)).reason


def test_d4_every_candidate_is_listed_with_its_reason():
    target = words(200)
    choices = eligible_drafts(
        target,
        [
            Candidate("fine", words(200)),
            Candidate("size", words(100, _0=b"x")),
            Candidate("content", words(200, _139=b"x")),
            Candidate("arch", None, "mamba keeps a recurrent state and cannot be rolled back"),
        ],
    )
    assert [c.candidate.name for c in choices] == ["fine", "size", "content", "arch"]
    assert [c.eligibility.ok for c in choices] == [True, False, False, False]
    assert "200 and 100" in choices[1].eligibility.reason
    assert choices[2].eligibility.first_difference == 139
    assert "recurrent state" in choices[3].eligibility.reason
    assert all(c.eligibility.reason for c in choices)


def test_a_mismatch_error_names_the_model_the_token_and_a_way_out():
    with pytest.raises(VocabMismatch) as caught:
        require_eligible(words(9), words(9, _3=b"x"), "tiny-draft")
    message = str(caught.value)
    for part in ("tiny-draft", "Token 3", "'word3'", "'x'", "ngram or suffix"):
        assert part in message
    assert require_eligible(words(9), words(8), "tiny-draft").unreachable == 1

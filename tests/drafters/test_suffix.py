"""Suffix decoding equals two tries walked as the paper says, built here from scratch."""

import random

import pytest

from specviz.config import DrafterOptions, SamplingParams
from specviz.drafters.base import Context
from specviz.drafters.suffix import SuffixDrafter, SuffixHistory
from specviz.verify.draws import Draws


def context(tokens) -> Context:
    return Context(tuple(tokens), 1, SamplingParams(), Draws(0))


class Trie:
    """Counts of all stretches of the texts up to `depth` tokens, one node each."""

    def __init__(self, texts, depth: int) -> None:
        self.count: dict[tuple[int, ...], int] = {}
        self.last: dict[tuple[int, ...], int] = {}
        place = 0
        for text in texts:
            for start in range(len(text)):
                for end in range(start + 1, min(len(text), start + depth) + 1):
                    node = tuple(text[start:end])
                    self.count[node] = self.count.get(node, 0) + 1
                    self.last[node] = place + end
            place += len(text) + 1

    def best(self, tokens, budget: int, options: DrafterOptions):
        depth, best = options.suffix_max_depth, ((), (), 0)
        for match in range(1, min(len(tokens) - 1, depth) + 1):
            node = tuple(tokens[-match:])
            if node not in self.count:
                break
            length = min(budget, int(match * options.suffix_max_factor + 1e-6))
            path, probs, prob = (), (), 1.0
            while len(path) < length:
                children = [k for k in self.count if k[:-1] == node]
                if not children:
                    break
                child = max(children, key=lambda k: (self.count[k], self.last[k]))
                prob *= self.count[child] / self.count[node]
                if prob < options.suffix_min_prob:
                    break
                node, path, probs = child, (*path, child[-1]), (*probs, prob)
            if sum(probs) >= sum(best[1]):
                best = (path, probs, match)
        return best


def by_definition(tokens, past, budget, options):
    here = Trie([tokens], options.suffix_max_depth).best(tokens, budget, options)
    there = Trie(past, options.suffix_max_depth).best(tokens, budget, options)
    return ("history", there) if sum(there[1]) > sum(here[1]) else ("context", here)


def random_text(rng: random.Random, alphabet: int, most: int) -> tuple[int, ...]:
    return tuple(rng.randrange(alphabet) for _ in range(rng.randint(1, most)))


OPTIONS = [
    DrafterOptions(),
    DrafterOptions(suffix_max_depth=4, suffix_min_prob=0.0, suffix_max_factor=3.0),
    DrafterOptions(suffix_max_depth=6, suffix_min_prob=0.4, suffix_max_factor=0.5),
]


@pytest.mark.parametrize("options", OPTIONS, ids=["default", "shallow", "strict"])
@pytest.mark.parametrize("alphabet", [2, 3, 8])
def test_equals_the_tries_of_the_paper_on_any_text_after_any_rewind(options, alphabet):
    rng = random.Random(alphabet)
    past = [random_text(rng, alphabet, 20) for _ in range(3)]
    history = SuffixHistory()
    for output in past:
        history.add(output)
    kept, text = SuffixDrafter(options, history), ()
    for _ in range(30):
        if rng.random() < 0.3:
            text = text[: rng.randint(0, len(text))]
        text = (*text[-30:], *random_text(rng, alphabet, 8))
        budget = rng.randint(1, 8)
        found = kept.propose(context(text), budget)
        store, (path, probs, match) = by_definition(text, past, budget, options)
        assert found.draft.tokens == path
        assert found.evidence.scores == probs
        assert found.evidence.store == (store if path else "")
        if path:
            assert found.evidence.match[1] - found.evidence.match[0] == match


def test_the_most_frequent_continuation_wins_over_the_first():
    text = (1, 2, 5, 1, 2, 6, 9, 1, 2, 6, 8, 0, 1, 2)
    found = SuffixDrafter(DrafterOptions()).propose(context(text), 4)
    assert found.draft.tokens == (6, 8)
    # (1, 2) stands in 4 places, the tail among them; 2 go on with 6, of those the newer with 8
    assert found.evidence.scores == (0.5, 0.25)


def test_evidence_points_at_the_newest_text_that_goes_on_so():
    text = (1, 2, 3, 4, 9, 1, 2, 3, 4, 8, 1, 2)
    found = SuffixDrafter(DrafterOptions()).propose(context(text), 2)
    assert found.draft.tokens == (3, 4)
    assert found.evidence.match == (5, 7)
    assert found.evidence.source == (7, 9)
    assert found.probs is None


def test_a_draft_from_history_shows_the_tail_that_was_looked_up():
    history = SuffixHistory()
    history.add((7, 8, 9, 10))
    found = SuffixDrafter(DrafterOptions(), history).propose(context((1, 7, 8)), 4)
    assert found.draft.tokens == (9, 10)
    assert found.evidence.store == "history"
    assert found.evidence.match == (1, 3)
    assert found.evidence.source is None
    assert found.evidence.scores == (1.0, 1.0)


def test_equal_scores_are_drafted_from_this_request():
    history = SuffixHistory()
    history.add((1, 3, 5, 1, 4))  # half of the 1s go on with 4; in the text half go on with 2
    options = DrafterOptions(suffix_min_prob=0.0)
    found = SuffixDrafter(options, history).propose(context((1, 2, 1)), 1)
    assert found.draft.tokens == (2,)
    assert found.evidence.scores == (0.5,)
    assert found.evidence.store == "context"


def test_a11_an_improbable_path_is_not_drafted_and_it_says_so():
    options = DrafterOptions(suffix_min_prob=0.9)
    found = SuffixDrafter(options).propose(context((1, 2, 1, 3, 1)), 4)
    assert not len(found.draft)
    assert (
        found.evidence.message == "No earlier text goes on from here with probability 0.9 or more."
    )


def test_b11_a_warm_store_drafts_more_and_a_reset_one_as_much_as_the_first_time():
    output, options = tuple(range(40)), DrafterOptions()
    history = SuffixHistory()

    def drafted() -> int:
        drafter = SuffixDrafter(options, history)
        return sum(
            len(drafter.propose(context((99, *output[:i])), 4).draft) for i in range(len(output))
        )

    assert history.requests == history.tokens == 0
    cold = drafted()
    history.add(output)
    assert (history.requests, history.tokens) == (1, 40)
    assert cold == 0
    assert drafted() > 100
    history.reset()
    assert (history.requests, history.tokens) == (0, 0)
    assert drafted() == cold


def test_history_changes_nothing_for_a_drafter_already_at_work():
    history = SuffixHistory(max_requests=2)
    history.add((1, 2, 3))
    drafter = SuffixDrafter(DrafterOptions(), history)
    before = drafter.propose(context((0, 1, 2)), 4)
    for output in ((1, 2, 9), (1, 2, 9), (1, 2, 9)):
        history.add(output)
        assert drafter.propose(context((0, 1, 2)), 4) == before
    history.reset()
    assert drafter.propose(context((0, 1, 2)), 4) == before
    assert before.draft.tokens == (3,)


def test_the_oldest_output_is_forgotten_first():
    rng, options = random.Random(5), DrafterOptions(suffix_min_prob=0.0)
    history, past = SuffixHistory(max_requests=3), []
    for _ in range(25):
        past = [*past, random_text(rng, 3, 9)][-3:]
        history.add(past[-1])
        assert history.requests == len(past)
        assert history.tokens == sum(map(len, past))
        text = random_text(rng, 3, 9)
        found = SuffixDrafter(options, history).propose(context(text), 4)
        assert found.draft.tokens == by_definition(text, past, 4, options)[1][0]


def test_no_match_crosses_from_one_output_into_the_next():
    history = SuffixHistory()
    history.add((1, 2))
    history.add((3, 4))
    found = SuffixDrafter(DrafterOptions(), history).propose(context((9, 1, 2)), 4)
    assert not len(found.draft)


def test_a_store_of_no_requests_stays_empty():
    history = SuffixHistory(max_requests=0)
    history.add((1, 2, 3))
    assert (history.requests, history.tokens) == (0, 0)
    assert not len(SuffixDrafter(DrafterOptions(), history).propose(context((0, 1, 2)), 4).draft)


def test_no_budget_no_draft():
    assert SuffixDrafter(DrafterOptions()).propose(context((1, 1, 1)), 0).evidence.message

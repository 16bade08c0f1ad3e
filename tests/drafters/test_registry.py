"""Schemes by name: what exists, what each needs, and what a wrong name says."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import SCHEMES, check_scheme, describe, make_drafter
from specviz.drafters.base import Context
from specviz.drafters.suffix import SuffixHistory
from specviz.errors import ConfigError, UnknownScheme, UnsupportedModel, VocabMismatch
from specviz.heads.dflash_config import DSparkShape
from specviz.models.tiny import tiny_llama
from specviz.verify.draws import Draws
from tests.heads.block_heads import spark_config, tiny_dflash, tiny_dspark
from tests.heads.random_heads import eagle3_head, mtp_head
from tests.stubs import TableTarget, random_table


@dataclass(frozen=True)
class Words:
    pieces: tuple[bytes, ...]

    @property
    def vocab_size(self) -> int:
        return len(self.pieces)

    def piece(self, token: int) -> bytes:
        return self.pieces[token]


HEADS = {"eagle3": eagle3_head, "mtp": mtp_head, "dflash": tiny_dflash, "dspark": tiny_dspark}
SEVEN = Words(tuple(bytes([65 + i]) for i in range(7)))


@dataclass(frozen=True)
class Source:
    target: TableTarget
    tokenizer: Words = SEVEN
    spec: str = "tiny-draft"


def config(scheme: str, **options) -> SessionConfig:
    return SessionConfig(scheme=scheme, options=DrafterOptions(**options))


def context(tokens) -> Context:
    return Context(tuple(tokens), 1, SamplingParams(), Draws(0))


@pytest.mark.parametrize("scheme", SCHEMES[:4])
def test_every_scheme_makes_a_drafter_that_answers_to_its_name(scheme):
    drafter = make_drafter(config(scheme), random_table(), SEVEN, Source(random_table()))
    assert drafter.name == scheme
    found = drafter.propose(context((1, 2, 3, 1, 2)), 3)
    assert len(found.draft) <= 3
    assert drafter.propose(context((1, 2, 3, 1, 2)), 0).draft.tokens == ()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_is_described(scheme):
    about = describe(scheme)
    assert about.name == scheme
    assert about.title
    assert about.sentence.endswith(".")
    assert about.needs_model == (scheme == "draft_model")
    assert about.needs_head == (scheme in HEADS)
    assert about.is_block == (scheme in ("dflash", "dspark"))
    assert about.drafts_trees == (scheme == "eagle3")


@pytest.mark.parametrize("scheme", HEADS)
def test_every_scheme_with_a_head_drafts_from_features(scheme):
    head = HEADS[scheme]()
    target = tiny_llama(layers=4, vocab=64).with_taps(head.taps)
    target.prefill((1, 2, 3, 1))
    seen = Context((1, 2, 3, 1, 2), 1, SamplingParams(), Draws(0), target.features)
    drafter = make_drafter(config(scheme), target, draft=head)
    assert drafter.name == scheme
    assert 0 < len(drafter.propose(seen, 3).draft) <= 3


def test_the_tree_of_eagle3_is_a_setting():
    head = eagle3_head()
    target = tiny_llama(layers=4, vocab=64).with_taps(head.taps)
    target.prefill((1, 2, 3, 1))
    seen = Context((1, 2, 3, 1, 2), 1, SamplingParams(), Draws(0), target.features)

    def draft(**options):
        return make_drafter(config("eagle3", **options), target, draft=head).propose(seen, 6).draft

    assert draft().is_chain
    assert not draft(tree_depth=2, tree_top_k=3).is_chain
    assert max(draft(tree_depth=2, tree_top_k=3).depths) == 2


def test_confidence_that_a_dspark_head_cannot_tell_is_refused():
    head = tiny_dspark(spark_config(DSparkShape(rank=0, confidence=False)))
    asked = config("dspark", confidence_threshold=0.5)
    with pytest.raises(ConfigError, match="no confidence head"):
        make_drafter(asked, tiny_llama(layers=4), draft=head)


@pytest.mark.parametrize("scheme", HEADS)
def test_a_missing_head_says_how_to_give_one(scheme):
    with pytest.raises(ConfigError, match=rf"scheme {scheme} needs a head.*--head"):
        make_drafter(config(scheme), random_table())


def test_a_head_of_another_scheme_is_refused_by_name():
    head = eagle3_head()
    head.name = "mine"
    with pytest.raises(UnsupportedModel, match=r"mine is a head for eagle3.*dflash"):
        make_drafter(config("dflash"), random_table(), draft=head)
    with pytest.raises(ConfigError, match="--draft-model"):
        make_drafter(config("draft_model"), random_table(), draft=head)


def test_none_never_drafts():
    found = make_drafter(config("none"), random_table()).propose(context((1, 1, 1, 1)), 9)
    assert found.draft.tokens == ()
    assert found.probs is None


def test_a2_a_misspelt_scheme_lists_the_valid_names_and_the_closest():
    with pytest.raises(UnknownScheme) as caught:
        make_drafter(config("gram"), random_table())
    message = str(caught.value)
    assert "'gram'" in message
    assert "did you mean 'ngram'?" in message
    assert "none, ngram, suffix, draft_model" in message
    with pytest.raises(UnknownScheme, match=r"there is no scheme 'zzz'\. Choose one of"):
        check_scheme("zzz")


def test_a_draft_model_scheme_without_a_draft_model_says_how_to_give_one():
    with pytest.raises(ConfigError, match="--draft-model"):
        make_drafter(config("draft_model"), random_table())


def test_d1_a_draft_of_another_vocabulary_is_refused_before_anything_runs():
    swapped = Words((*SEVEN.pieces[:5], b"G", b"F"))
    with pytest.raises(VocabMismatch, match=r"tiny-draft cannot draft .* Token 5"):
        make_drafter(config("draft_model"), random_table(), SEVEN, Source(random_table(), swapped))


def test_b1_the_target_may_be_its_own_draft_and_keeps_its_cache():
    model = random_table()
    model.prefill((1, 2, 3))
    drafter = make_drafter(config("draft_model"), model, SEVEN, Source(model))
    assert len(drafter.propose(context((4, 5, 6)), 3).draft) == 3
    assert model.cached == [1, 2, 3]


def test_end_tokens_of_the_target_reach_the_drafters_that_use_them():
    target = TableTarget(7, lambda tokens: [0.0] * 7, eos=(2,))
    drafter = make_drafter(config("ngram", ngram_tie="transformers"), target)
    assert drafter.propose(context((1, 3, 2, 4, 1)), 4).draft.tokens == (3,)


def test_b11_history_is_shared_only_if_it_is_given():
    history = SuffixHistory()
    history.add((1, 2, 3))
    warm = make_drafter(config("suffix"), random_table(), history=history)
    cold = make_drafter(config("suffix"), random_table())
    assert warm.propose(context((0, 1, 2)), 2).draft.tokens == (3,)
    assert cold.propose(context((0, 1, 2)), 2).draft.tokens == ()


def test_the_list_of_schemes_loads_no_torch():
    code = (
        "import sys, specviz.drafters as d; d.describe('ngram'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Real runs of transformers' assisted decoding, with what it drafted in every round."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.config import SamplingParams, SessionConfig
from specviz.drafters.base import Drafter
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import read_llama_config
from specviz.models.tiny import Family, TinyShape, tiny_tensors
from specviz.session import DecodeSession


@dataclass(frozen=True, slots=True)
class Drafted:
    """One round of theirs: the text it drafted after, and the draft."""

    text: tuple[int, ...]
    draft: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of theirs. The round that only reads the prompt is left out."""

    rounds: tuple[Drafted, ...]
    tokens: tuple[int, ...]  # prompt and output


def generate(
    model, generator: type, prompt: tuple[int, ...], tokens: int, monkeypatch, **options: object
) -> Run:
    """Decode greedily with transformers and listen to what `generator` returns."""
    rounds, original = [], generator.get_candidates

    def listen(self, input_ids: Tensor, *args, **kwargs):
        whole, logits = original(self, input_ids, *args, **kwargs)
        if not kwargs.get("is_first_iteration"):
            text = tuple(input_ids[0].tolist())
            rounds.append(Drafted(text, tuple(whole[0, len(text) :].tolist())))
        return whole, logits

    with monkeypatch.context() as patched, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        patched.setattr(generator, "get_candidates", listen)
        ids = torch.tensor([prompt])
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=tokens,
            do_sample=False,
            **options,
        )
    return Run(tuple(rounds), tuple(out[0].tolist()))


def both(family: Family, seed: int = 0, **shape: int) -> tuple[LlamaTarget, object]:
    """The same random target in our decoder and in transformers, float32, without end tokens."""
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = TinyShape(**shape).settings(family)
    config = read_llama_config(settings, name=family)
    tensors = tiny_tensors(config, seed)
    reference = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings)).eval()
    reference.load_state_dict(tensors, strict=not settings["tie_word_embeddings"])
    reference.generation_config.pad_token_id = 0
    return LlamaTarget.from_tensors(config, tensors), reference


def ours(
    target: LlamaTarget, drafter: Drafter, prompt: tuple[int, ...], tokens: int, length: int
) -> DecodeSession:
    """Our whole run after `prompt`."""
    session = DecodeSession(
        target,
        drafter,
        prompt,
        SamplingParams(max_tokens=tokens),
        SessionConfig(draft_length=length),
    )
    list(session)
    return session


def compare(session: DecodeSession, run: Run, block: int = 0) -> int:
    """Check that both have the same rounds and drafts; return how many tokens were accepted.

    The one difference: ours drafts no token that the asked-for length has no room for; theirs
    drafts on and cuts. Of a head that drafts `block` tokens at once ours then runs a shorter block,
    whose drafts are others: such rounds are left out.
    """
    assert session.tokens == run.tokens
    assert len(session.rounds) == len(run.rounds)
    for mine, their in zip(session.rounds, run.rounds, strict=True):
        assert mine.start == len(their.text)
        room = len(run.tokens) - len(their.text) - 1
        if room >= block:
            assert mine.draft.tokens == their.draft[:room], mine.start
    return sum(len(r.path) for r in session.rounds)

"""From logits to p: penalties, bias, temperature, top-k, top-p, min-p, for every row.

A row of a draft stands after drafted tokens, so its penalties count them too: row i is
P(x | committed, its own path), whether or not that path will be accepted.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from specviz.config import SamplingParams
from specviz.errors import ConfigError, DraftError, NumericsError
from specviz.events import ROOT, Draft
from specviz.models.transfer import send
from specviz.verify.best import best_of_rows
from specviz.words import _


def row_outputs(output: Sequence[int], draft: Draft) -> list[tuple[int, ...]]:
    """Return for each row the output tokens it stands after: committed ones, then its path."""
    committed = tuple(output)
    return [
        (*committed, *(draft.tokens[i] for i in draft.path_to(node)))
        for node in range(ROOT, len(draft))
    ]


def penalise(
    logits: Tensor, prompt: Sequence[int], outputs: Sequence[Sequence[int]], params: SamplingParams
) -> Tensor:
    """Apply penalties and logit bias to logits [rows, vocab]; outputs[i] precedes row i.

    Repetition (arXiv:1909.05858, section 4.1) counts prompt and output; frequency and presence
    count the output alone.
    """
    if not params.penalised:
        return logits
    vocab = logits.shape[-1]
    counts = torch.stack([_counts(tokens, vocab, logits) for tokens in outputs])
    seen = (counts + _counts(prompt, vocab, logits)) > 0
    if params.repetition_penalty != 1:
        penalty = params.repetition_penalty
        scaled = torch.where(logits > 0, logits / penalty, logits * penalty)
        logits = torch.where(seen, scaled, logits)
    logits = logits - params.frequency_penalty * counts - params.presence_penalty * (counts > 0)
    for token, bias in params.logit_bias:
        if token >= vocab:
            raise ConfigError(
                _("logit_bias names token {token}; the vocabulary ends at {most}").format(
                    token=token, most=vocab - 1
                )
            )
        logits[:, token] += bias
    return logits


def distribution(logits: Tensor, params: SamplingParams) -> Tensor:
    """Return p [rows, vocab] of penalised logits; one-hot at temperature 0."""
    if params.greedy:
        return torch.zeros_like(logits).scatter_(-1, best_of_rows(logits)[..., None], 1.0)
    logits = logits / params.temperature
    if 0 < params.top_k < logits.shape[-1]:
        smallest = logits.topk(params.top_k, -1).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, -torch.inf)
    p = logits.softmax(-1)
    if params.top_p < 1:
        p = _nucleus(p, params.top_p)
    if params.min_p > 0:
        p = p.masked_fill(p < params.min_p * p.amax(-1, keepdim=True), 0.0)
    return p / p.sum(-1, keepdim=True)


def check_rows(rows: Tensor, what: str, round_index: int, start: int) -> None:
    """Raise NumericsError if a row of logits or probabilities [rows, vocab] has no finite maximum.

    The maximum of a row is NaN if anything in it is, and infinite if nothing in it can be drawn.
    """
    bad = (~torch.isfinite(rows.amax(-1))).nonzero()
    if len(bad):
        raise numerics_error(what, int(bad[0]), round_index, start)


def numerics_error(what: str, row: int, round_index: int, start: int) -> NumericsError:
    """Return the error that names a bad row of the round that begins at text position `start`."""
    return NumericsError(
        _(
            "{what} holds NaN or Inf in round {round_index}, row {row}, which continues text "
            "position {start}; decoding stopped there. Check the weights or try dtype float32."
        ).format(what=what, round_index=round_index, row=row, start=start - 1)
    )


def of_tokens(rows: Tensor, draft: Draft) -> Tensor:
    """Return what each of rows [nodes, vocab] gives to the token of its node, [nodes]."""
    return rows.gather(1, send(draft.tokens, rows.device)[:, None])[:, 0]


def check_mass(drafter: str, tokens: Sequence[int], masses: Sequence[float]) -> None:
    """Raise DraftError if q gives no mass to a token that was drawn from it; NaN is none."""
    for token, mass in zip(tokens, masses, strict=True):
        if not mass > 0:
            raise DraftError(
                _("{name} drew token {token}, to which its q gives no mass").format(
                    name=drafter, token=token
                )
            )


def _counts(tokens: Sequence[int], vocab: int, like: Tensor) -> Tensor:
    """Occurrences [vocab] of each id, as floats on the device of `like`."""
    ids = torch.tensor(tuple(tokens), dtype=torch.int64)
    return torch.bincount(ids, minlength=vocab).to(like.device, like.dtype)


def _nucleus(p: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of tokens whose mass reaches top_p (arXiv:1904.09751)."""
    ordered, order = p.sort(dim=-1, descending=True, stable=True)  # ties: lower ids first
    before = ordered.cumsum(-1) - ordered
    kept = ordered.masked_fill(before >= top_p, 0.0)
    return torch.zeros_like(p).scatter_(-1, order, kept)

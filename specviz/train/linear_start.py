"""Where recurrent heads begin: the best linear guess of the target's next hidden state."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.heads.eagle3 import Eagle3Head
from specviz.train.batches import Batch
from specviz.train.tables import Tables

RIDGE = 1e-3  # of the mean square of the inputs
SHARPNESS = 7.0  # score of a row with itself; others are near 0
SCALES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # of the final norm: how sure a guess may be


@dataclass(frozen=True, slots=True)
class Guesser:
    """What was fitted: parts of the map [hidden, taps * hidden], [hidden, hidden], and doubt."""

    features: Tensor
    embedding: Tensor
    scale: float


def fit_guesser(
    batches: Iterable[Batch], taps: tuple[int, ...], tables: Tables, norm: Tensor
) -> Guesser:
    """Fit y(i + 1) from the features of i and the embedding of token i + 1, all normed to unit RMS.

    y is what the target's final norm sees, up to its length; norm [hidden] is the weight of that
    norm. Rows are those a head is trained on.
    """
    gram: Tensor | None = None
    for batch in batches:
        x, y, _ = _rows(batch, taps, tables, norm)
        if gram is None:
            gram, cross = x.new_zeros(x.shape[1], x.shape[1]), x.new_zeros(x.shape[1], y.shape[1])
        gram, cross = gram.addmm_(x.T, x), cross.addmm_(x.T, y)
        last = batch
    assert gram is not None  # there is a batch
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    both = torch.linalg.solve(gram, cross).T
    x, _, tokens = _rows(last, taps, tables, norm)
    guess = _unit(x @ both.T) * norm
    head = tables.head.float()
    rows = slice(0, 256)
    losses = [F.cross_entropy(s * guess[rows] @ head.T, tokens[rows]) for s in SCALES]
    best = SCALES[min(range(len(SCALES)), key=lambda i: float(losses[i]))]
    width = both.shape[1] - norm.shape[0]
    return Guesser(both[:, :width].contiguous(), both[:, width:].contiguous(), best)


@torch.no_grad()
def start_eagle3(head: Eagle3Head, guesser: Guesser) -> None:
    """Make a head with one KV head per query head say what `guesser` says.

    Equal queries and keys of the embedding make each row attend to itself; values hand its
    embedding on, and the output projection is the embedding's part of the map.
    """
    layer = head.decoder_layers()[0]
    attention, s = layer.self_attn, head.shape
    head.fc.weight.copy_(guesser.features)
    head.norm.weight.mul_(guesser.scale)
    width = s.heads * s.head_dim
    if s.kv_heads != s.heads or width != s.hidden:
        return  # the door is too narrow for the embedding; the rest still helps
    spread = (SHARPNESS / (s.hidden * s.head_dim**0.5)) ** 0.5
    shared = torch.randn(width, s.hidden, device=head.fc.weight.device) * spread
    attention.q_proj.weight[:, : s.hidden] = shared
    attention.k_proj.weight[:, : s.hidden] = shared
    attention.v_proj.weight.zero_()
    attention.v_proj.weight[:, : s.hidden].fill_diagonal_(1.0)
    attention.o_proj.weight.copy_(guesser.embedding)
    for name in ("q_proj", "k_proj", "v_proj"):  # and a little of everything else
        weight = getattr(attention, name).weight
        weight.add_(0.01 * torch.randn_like(weight))
    layer.mlp.get_parameter("down_proj.weight").mul_(0.5)


def _rows(
    batch: Batch, taps: tuple[int, ...], tables: Tables, norm: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs [n, (taps + 1) * hidden], wanted [n, hidden], and the tokens after next [n]."""
    text, at = batch.supervised[:, 2:].nonzero(as_tuple=True)
    features = _unit(batch.select(taps)[text, at].float()).flatten(1)
    embedded = _unit(tables.embed[batch.tokens[text, at + 1]].float())
    wanted = _unit(batch.final[text, at + 1].float() / norm)
    return torch.cat((features, embedded), dim=1), wanted, batch.tokens[text, at + 2]


def _unit(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:])

"""`verify_tree` and `verify_chain`: the decisions of the reference for the same uniforms."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from kernels.checks import Check
from kernels.verify_chain import verify_chain
from kernels.verify_tree import Chance, Drafted, Sampling, draw_uniforms, verify_tree

BUSHY = (-1, -1, -1, 0, 0, 1, 3, 3, 6)
DEEP = (-1, 0, 1, 2, 3, 4, 5, 6)
SMALL = (-1, -1, 0, 0, 1)
SETTINGS = {
    "greedy": Sampling(),
    "temperature": Sampling(temperature=1.0),
    "top-k": Sampling(temperature=0.7, top_k=20),
    "top-p": Sampling(temperature=1.2, top_p=0.8),
    "everything": Sampling(temperature=1.0, top_k=50, top_p=0.9, min_p=0.05),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A random draft whose tokens the target rather likes, so that some are accepted."""

    parents: tuple[int, ...]
    sampling: Sampling
    point: bool
    vocab: int
    seed: int
    dtype: torch.dtype = torch.float32

    def make(self, device: torch.device) -> tuple[Tensor, Drafted]:
        """Return logits [rows, vocab] and the draft."""
        generator, nodes = torch.Generator().manual_seed(self.seed), len(self.parents)
        logits = (3 * torch.randn(nodes + 1, self.vocab, generator=generator)).to(self.dtype)
        above = logits[torch.tensor([p + 1 for p in self.parents], dtype=torch.long)].float()
        noise = torch.randn(nodes, self.vocab, generator=generator)
        q = (above / (self.sampling.temperature or 0.1) + 0.5 * noise).softmax(-1)
        tokens = torch.multinomial(q, 1, generator=generator)[:, 0] if nodes else torch.tensor([])
        drafted = Drafted(
            tokens=tokens.long().to(device),
            parents=torch.tensor(self.parents, dtype=torch.int32, device=device),
            q=None if self.point or not nodes else q.to(device),
        )
        return logits.to(device), drafted


def checks(device: torch.device) -> Iterator[Check]:
    """Every sampler setting; a GPU gets deep trees and a real vocabulary, all settings on each."""
    on_gpu = device.type == "cuda"
    for name, sampling in SETTINGS.items():
        for parents, point in _drafts(name, on_gpu):
            scene = Scene(
                parents=parents,
                sampling=sampling,
                point=point,
                vocab=128_000 if on_gpu else 2500 if name == "everything" else 300,
                seed=3,
            )
            kind = "point" if point else "drawn"
            label = f"verify_tree: {name}, parents {parents}, {kind} drafts"
            yield Check(label, partial(decides_alike, scene, 3 if on_gpu else 1))
    tied = Scene(
        parents=SMALL,
        sampling=Sampling(temperature=1.0, top_p=0.7),
        point=True,
        vocab=700,
        seed=5,
        dtype=torch.bfloat16,
    )
    yield Check("verify_tree: bf16 logits with ties at the edge", partial(decides_alike, tied, 1))
    yield Check("verify_tree: siblings with the same token", twins)
    yield Check("verify_tree: NaN in a row is reported", reports_nan)
    yield Check("verify_chain: a chain is a tree", chain_is_a_tree)


def _drafts(setting: str, on_gpu: bool) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Parents, and whether drafts are points: few for the interpreter."""
    if on_gpu:
        for parents in (BUSHY, DEEP):
            yield from ((parents, True), (parents, False))
        yield (), True
    elif setting == "greedy":
        yield from ((BUSHY, True), (DEEP, True), ((), True))
    elif setting == "everything":
        yield (-1, 0), False
    else:
        yield from ((SMALL, False), ((-1, 0, 1), True))


def decides_alike(scene: Scene, seeds: int, device: torch.device) -> None:
    """Promise: path and token are the reference's, with its own draws and with given ones."""
    for seed in range(scene.seed, scene.seed + seeds):
        logits, drafted = scene.make(device)
        seeded = Chance(seed=seed * 7919 + 2**40, position=100)
        given = Chance(uniforms=draw_uniforms(drafted, seeded).to(device))
        wanted = verify_tree(logits.cpu(), _on_cpu(drafted), scene.sampling, seeded, "reference")
        for chance in (seeded, given):
            got = verify_tree(logits, drafted, scene.sampling, chance, "triton")
            assert got.whole.tolist() == wanted.whole.tolist(), (
                f"seed {seed}: {got.whole.tolist()}, not {wanted.whole.tolist()}"
            )
            seen = ~wanted.parts.isnan()
            apart = (got.parts.cpu() - wanted.parts)[seen].abs().max()
            assert float(apart) < 1e-5, f"probabilities are {float(apart):.2g} apart"


def twins(device: torch.device) -> None:
    """Promise: a token refused once has no mass left for a sibling that says the same."""
    logits = torch.zeros(4, 16, device=device)
    tokens = torch.full((3,), 9, device=device)
    parents = torch.full((3,), -1, dtype=torch.int32, device=device)
    drafted = Drafted(tokens=tokens, parents=parents)
    uniforms = torch.zeros(7, dtype=torch.float64, device=device)
    uniforms[0] = 0.5  # the first is refused; the others are accepted if they have any mass
    sampling = Sampling(temperature=1.0)
    got = verify_tree(logits, drafted, sampling, Chance(uniforms=uniforms), "triton")
    assert got.whole.tolist() == [0, 0, -1, -1, -1, -1], got.whole.tolist()
    assert got.parts[:3].tolist() == [0.0625, 0.0, 0.0], got.parts.tolist()


def reports_nan(device: torch.device) -> None:
    """Promise: the first bad row is named, and the launch ends."""
    logits = torch.randn(3, 300, generator=torch.Generator().manual_seed(0)).to(device)
    logits[1, 77] = torch.nan
    logits[2] = -torch.inf
    for sampling in (SETTINGS["greedy"], SETTINGS["everything"]):
        tokens = torch.tensor([1, 2], device=device)
        verdict = verify_chain(logits, tokens, sampling, Chance(), backend="triton")
        assert int(verdict.bad_row) == 1, f"bad row {int(verdict.bad_row)} under {sampling}"


def chain_is_a_tree(device: torch.device) -> None:
    """Promise: `verify_chain` is `verify_tree` on a chain."""
    scene = Scene(
        parents=(-1, 0, 1), sampling=SETTINGS["temperature"], point=False, vocab=300, seed=1
    )
    logits, drafted = scene.make(device)
    chance = Chance(seed=4)
    chain = verify_chain(logits, drafted.tokens, scene.sampling, chance, drafted.q, "triton")
    tree = verify_tree(logits, drafted, scene.sampling, chance, "triton")
    assert chain.whole.tolist() == tree.whole.tolist()


def _on_cpu(drafted: Drafted) -> Drafted:
    q = None if drafted.q is None else drafted.q.cpu()
    return Drafted(tokens=drafted.tokens.cpu(), parents=drafted.parents.cpu(), q=q)

"""Calibration: temperatures undo over-confidence, slot by slot."""

import pytest
import torch

from specviz.errors import ConfigError
from specviz.heads.dspark_calibration import calibrate, calibration_error

TRUE = (1.5, 2.5)


def blocks(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits that are too sure by the factors `TRUE`, and what became of the drafts."""
    generator = torch.Generator().manual_seed(0)
    logits = 2.5 * torch.randn(count, 2, generator=generator) + 1
    chance = (logits / torch.tensor(TRUE)).sigmoid()
    stands = torch.rand(count, 2, generator=generator) < chance
    return logits, stands.int().cumprod(dim=1).sum(dim=1)


def test_temperatures_undo_what_made_the_head_too_sure() -> None:
    logits, accepted = blocks(20_000)
    found = calibrate(logits, accepted)
    assert found[0] == pytest.approx(TRUE[0], rel=0.15)
    assert found[1] == pytest.approx(TRUE[1], rel=0.15)


def test_survival_is_closer_to_the_truth_after_calibration() -> None:
    logits, accepted = blocks(5_000)
    survived = (accepted > 1).double()

    def error(temperatures: tuple[float, ...]) -> float:
        chances = (logits / torch.tensor(temperatures)).sigmoid().prod(dim=1)
        return calibration_error(chances, survived)

    assert error(calibrate(logits, accepted)) < 0.5 * error((1.0, 1.0))


def test_chances_that_come_true_have_no_error() -> None:
    chances = torch.tensor([0.25, 0.25, 0.25, 0.25, 1.0])
    assert calibration_error(chances, torch.tensor([1, 0, 0, 0, 1])) == 0
    assert calibration_error(chances, torch.tensor([0, 0, 0, 0, 1])) == pytest.approx(0.2)


def test_a_count_per_block_is_needed() -> None:
    with pytest.raises(ConfigError, match="accepted"):
        calibrate(torch.zeros(3, 2), torch.zeros(2))

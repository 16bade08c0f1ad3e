"""The output head and its loss in pieces: logits of all rows never exist at once."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

ROWS = 512  # fewer pieces add to the gradient of the table less often; measured on a CPU


class Goals(NamedTuple):
    """What rows are taught: soft [rows, size] probabilities, labels [rows], share of the labels."""

    soft: Tensor
    labels: Tensor
    hard: float
    weights: Tensor  # of rows; they should sum to 1
    lift: Tensor | None = None  # [size], added to the logits: see `Sample`


class Projected(NamedTuple):
    """The weighted loss, and per row its cross entropy and whether the favourite is right."""

    loss: Tensor
    each: Tensor
    right: Tensor


def projected_loss(hidden: Tensor, weight: Tensor, goals: Goals) -> Projected:
    """Cross entropy of hidden [rows, width] @ weight.T, weight [size, width], against `goals`.

    Gradients are made together with the loss, so nothing of size rows x size is kept. Products are
    in the dtype of autocast, sums in float32.
    """
    dtype = hidden.dtype
    if torch.is_autocast_enabled(hidden.device.type):
        dtype = torch.get_autocast_dtype(hidden.device.type)
    found: tuple[Tensor, ...] = _Loss.apply(hidden, weight, goals, dtype)  # type: ignore[no-untyped-call]
    return Projected(*found)


class _Loss(Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, hidden: Tensor, weight: Tensor, goals: Goals, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Tensor]:
        table, rows = weight.detach().to(dtype), hidden.detach().to(dtype)
        each = torch.empty(len(rows), device=rows.device)
        right = torch.empty(len(rows), dtype=torch.bool, device=rows.device)
        grad_rows = torch.empty_like(rows)
        trained = weight.requires_grad
        grad_table = torch.zeros_like(weight, dtype=torch.float32) if trained else None
        with torch.autocast(rows.device.type, enabled=False):
            for start in range(0, len(rows), ROWS):
                part = slice(start, start + ROWS)
                logits = (rows[part] @ table.T).float()
                if goals.lift is not None:
                    logits += goals.lift
                labels = goals.labels[part, None]
                right[part] = logits.gather(1, labels)[:, 0] >= logits.amax(dim=1)
                log_q = F.log_softmax(logits, dim=1)
                soft = goals.soft[part]
                each[part] = -(1 - goals.hard) * torch.linalg.vecdot(soft, log_q)
                grad = log_q.exp_()
                if goals.hard:
                    each[part] -= goals.hard * grad.gather(1, labels)[:, 0].log()
                    grad.sub_(soft, alpha=1 - goals.hard)
                    grad.scatter_add_(
                        1, labels, torch.full_like(labels, -1.0, dtype=grad.dtype) * goals.hard
                    )
                else:
                    grad.sub_(soft)
                grad = grad.mul_(goals.weights[part, None]).to(dtype)
                torch.mm(grad, table, out=grad_rows[part])
                if grad_table is not None:
                    grad_table += grad.T @ rows[part]
        ctx.save_for_backward(grad_rows, grad_table)  # type: ignore[arg-type]
        ctx.like = hidden.dtype  # type: ignore[attr-defined]
        ctx.mark_non_differentiable(each, right)
        return (each * goals.weights).sum(), each, right

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_rows, grad_table = ctx.saved_tensors  # type: ignore[attr-defined]
        by = grads[0]
        table = None if grad_table is None else grad_table * by
        return (grad_rows * by).to(ctx.like), table, None, None  # type: ignore[attr-defined]

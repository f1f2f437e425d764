"""W's block word by word (Definitions 3 to 6), one sequence at a time: the second route of replays."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.w.instance import Instance


def output(W: Tensor, of: Instance, tokens: list[int], i: int, A: Tensor | None = None) -> Tensor:
    """Return T(b)[i] at the 0-based position i: hᵀ ReLU(W [e_i; X softmax(Xᵀ A e_i)]).

    >>> from parityscope.papers.w.instance import instance
    >>> made = instance(n=4, k=2, d=32, m=2)
    >>> found = output(made.block.W, made, made.tokens[5].tolist(), 4)
    >>> torch.allclose(found, made.block(made.tokens[5:6])[0, 0])
    True
    """
    X = torch.stack([of.block.embeddings[j, tokens[j]] for j in range(i + 1)], dim=1)
    A = of.block.A if A is None else A
    seen = X @ torch.softmax(X.T @ A @ X[:, i], dim=0)
    return of.block.h @ torch.relu(W @ torch.cat((X[:, i], seen)))


def attention_output(of: Instance, tokens: list[int], i: int) -> Float[Tensor, " d"]:
    """Return A(E(b))[i] where A is 0: the plain mean of the embeddings up to i.

    >>> from parityscope.papers.w.instance import instance
    >>> made = instance(n=4, k=2, d=32, m=2)
    >>> torch.equal(attention_output(made, made.tokens[5].tolist(), 0), made.block.embeddings[0, made.tokens[5, 0]])
    True
    """
    total = torch.zeros(of.block.d, dtype=torch.float64)
    for j in range(i + 1):
        total = total + of.block.embeddings[j, tokens[j]]
    return total / (i + 1)


@torch.no_grad()
def slope_of_loss(of: Instance, r: int, direction: Float[Tensor, " twice_d"], A: Tensor | None = None) -> float:
    """Return the slope of the batch's linear loss along a direction of neuron r's weights, by central differences.

    >>> from parityscope.papers.w.instance import instance
    >>> made = instance(n=4, k=2, d=32, m=2, batch=5)
    >>> along = torch.eye(64, dtype=torch.float64)[40]
    >>> abs(slope_of_loss(made, 1, along) - float(made.gradient_attended[1, 8])) < 1e-9
    True
    """
    step, n = 1e-4, of.task.n
    losses = []
    for side in (1, -1):
        W = of.block.W.detach().clone()
        W[r] += side * step * direction
        losses.append(
            sum(
                (-1) ** tokens[i + 1] * float(output(W, of, tokens, i, A))
                for tokens in of.tokens.tolist()
                for i in range(n, n + of.task.k)
            )
        )
    return (losses[0] - losses[1]) / (2 * step * len(of.tokens))

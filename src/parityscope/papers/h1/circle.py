"""H1's transformer as a function of its 2k trained numbers, with gradients and Hessians per input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad, jacrev, vmap

from parityscope.core.ties import first_largest
from parityscope.models import ParityTransformer
from parityscope.problems import Parity, bits_of

SMOOTHING = 0.01  # the b of most checks: the text leaves it open, the recipe has this
SEED = 0


@dataclass(frozen=True)
class Circle:
    """n bits, k heads on the circle, temperature τ, smoothing b. Heads are (…, k, 2), inputs (…, n).

    At A = 0 attention is uniform and S is k/n times the number of ones: two of four at k = 2 give S = 1 and ŷ = −1.
    """

    n: int
    k: int
    tau: float
    b: float

    model: ParityTransformer = field(init=False, repr=False)  # the product's own; its heads are replaced in every call

    def __post_init__(self) -> None:
        still = torch.zeros(self.k, 2, dtype=torch.float64)
        model = ParityTransformer(self.n, self.k, temperature=self.tau, smoothing=self.b, directions=still)
        object.__setattr__(self, "model", model.requires_grad_(False))

    def setting(self, support: tuple[int, ...]) -> dict[str, Any]:
        """Return what a counterexample needs to be replayed, its heads and inputs aside."""
        return {"n": self.n, "k": self.k, "support": list(support), "tau": self.tau, "b": self.b}

    def prediction(self, heads: Tensor, x: Tensor) -> Tensor:
        """Return ŷ of one input."""
        return functional_call(self.model, {"_directions": heads}, (x[None],))[0]

    def gradient(self, heads: Tensor, x: Tensor) -> Tensor:
        """Return ∇ŷ for pairs of heads and inputs: (batch, 2k)."""
        return gradients_of(lambda at: vmap(self.prediction)(at, x), heads).flatten(-2)

    def second_derivatives(self, heads: Tensor, x: Tensor) -> Tensor:
        """Return the Hessian of ŷ for pairs of heads and inputs: (batch, 2k, 2k)."""
        found: Tensor = vmap(jacrev(grad(self.prediction)))(heads, x)
        return found.reshape(len(heads), 2 * self.k, 2 * self.k)

    def loss(self, heads: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Return the squared hinge of one example."""
        return (1 - y * self.prediction(heads, x)).relu().square()

    def risk(self, heads: Tensor, support: tuple[int, ...]) -> Tensor:
        """Return the population risk of one set of heads, visiting every input."""
        x, y = self.all_inputs(support)
        prediction = functional_call(self.model, {"_directions": heads}, (x,))
        return (1 - y * prediction).relu().square().mean()

    def risk_gradient(self, heads: Tensor, support: tuple[int, ...]) -> Tensor:
        """Return ∇ of the population risk for a batch of heads: (batch, k, 2)."""
        return gradients_of(vmap(lambda one: self.risk(one, support)), heads)

    def risk_second_derivatives(self, heads: Tensor, support: tuple[int, ...]) -> Tensor:
        """Return the Hessian of the population risk for a batch of heads: (batch, 2k, 2k)."""
        found: Tensor = vmap(jacrev(grad(self.risk)), in_dims=(0, None))(heads, support)
        return found.reshape(len(heads), 2 * self.k, 2 * self.k)

    def all_inputs(self, support: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Return all 2^n inputs and their labels as floats."""
        x = bits_of(torch.arange(2**self.n), self.n)
        return x.double(), Parity(self.n, support).label(x).double()

    def attention(self, heads: Tensor) -> Tensor:
        """Return γ for a batch of heads: (…, k, n)."""
        return torch.softmax(heads @ self.model.positions.T / self.tau, dim=-1)


def unit_heads(count: int, k: int, generator: torch.Generator) -> Tensor:
    """Return H1's starts: directions uniform on the circle, (count, k, 2).

    >>> heads = unit_heads(5, 2, torch.Generator().manual_seed(0))
    >>> torch.allclose(heads.norm(dim=-1), torch.ones(5, 2, dtype=torch.float64))
    True
    """
    angle = 2 * torch.pi * torch.rand(count, k, generator=generator, dtype=torch.float64)
    return torch.stack([angle.cos(), angle.sin()], dim=-1)


def gradients_of(values: Callable[[Tensor], Tensor], heads: Tensor) -> Tensor:
    """Return the gradient of every value with respect to its own heads; differentiable where the heads are.

    (`torch.func.grad` does the same, but imports torch's compiler, which takes longer than most checks.)

    >>> gradients_of(lambda heads: heads.square().sum(-1), torch.tensor([[3.0, -1.0], [0.0, 2.0]])).tolist()
    [[6.0, -2.0], [0.0, 4.0]]
    """
    further = heads.requires_grad and torch.is_grad_enabled()
    with torch.enable_grad():
        at = heads if heads.requires_grad else heads.detach().requires_grad_()
        (found,) = torch.autograd.grad(values(at).sum(), at, create_graph=further)
    return found


def gradient_by_differences(
    function: Callable[..., Tensor], heads: Tensor, *arguments: Any, step: float = 1e-5
) -> Tensor:
    """Return the derivatives of `function(heads, …)` by central differences: the second route to an autograd number.

    Their shape is that of the heads, then that of the value.

    >>> gradient_by_differences(lambda heads: heads.square().sum(), torch.tensor([3.0, -1.0], dtype=torch.float64))
    tensor([ 6.0000, -2.0000], dtype=torch.float64)
    """
    moves = step * torch.eye(heads.numel(), dtype=heads.dtype).reshape(-1, *heads.shape)
    slopes = [(function(heads + move, *arguments) - function(heads - move, *arguments)) / (2 * step) for move in moves]
    return torch.stack(slopes).unflatten(0, heads.shape)


def example_gradients(circle: Circle, heads: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the loss gradient of every example: (examples, k, 2).

    They average to the gradient of the risk.
    """
    return gradients_of(lambda at: vmap(circle.loss)(at, x, y), heads.expand(len(x), *heads.shape))


def sharp_circle() -> Circle:
    """Return a size at which the appendix's assumption can be met: γ ≤ c₁τ near the peak, almost 0 beyond π/4.

    >>> round(sharp_circle().tau * sharp_circle().n, 9)  # c₁
    3.5
    """
    return Circle(64, 2, 3.5 / 64, SMOOTHING)


def appendix_assumption(circle: Circle, heads: Tensor) -> dict[str, float]:
    """Measure the assumption before Lemma 17 on one set of heads: c₁, c₂ and what lies beyond π/4.

    >>> heads = unit_heads(1, 2, torch.Generator().manual_seed(0))[0]
    >>> measured = appendix_assumption(sharp_circle(), heads)
    >>> measured["largest_weight_over_c1_tau"] < 1 and measured["weight_beyond_a_quarter_pi"] < 0.01
    True
    """
    gamma = circle.attention(heads)  # (k, n)
    near = near_peak(circle, gamma)
    c1_tau = circle.tau**2 * circle.n
    first, second = gamma.topk(2).values.unbind(-1)
    return {
        "c1": circle.tau * circle.n,
        "largest_weight_over_c1_tau": float(gamma.max()) / c1_tau,
        "second_weight_over_c1_tau": float(second.max()) / c1_tau,
        "largest_weight_over_1_less_c1_tau": float(first.max()) / (1 - c1_tau) if c1_tau < 1 else float("inf"),
        "c2": float(gamma[near].min()) / circle.tau,
        "weight_beyond_a_quarter_pi": float(gamma.masked_fill(near, 0.0).sum(-1).max()),
    }


def meets_appendix_assumption(circle: Circle, heads: Tensor) -> bool:
    """Say whether attention is as assumed before Lemma 17, c₁ that of τ = c₁/n; “close to 0” is read as 0.01.

    >>> heads = unit_heads(1, 2, torch.Generator().manual_seed(0))[0]
    >>> [meets_appendix_assumption(one, heads) for one in (sharp_circle(), Circle(8, 2, 1 / 8, SMOOTHING))]
    [True, False]
    """
    measured = appendix_assumption(circle, heads)
    peaked = measured["second_weight_over_c1_tau"] <= 1 and measured["largest_weight_over_1_less_c1_tau"] <= 1
    return peaked and measured["weight_beyond_a_quarter_pi"] <= 0.01


def near_peak(circle: Circle, gamma: Tensor) -> Tensor:
    """Say which positions lie within π/4 of the one each head attends to most: (…, k, n) bool.

    >>> circle = Circle(8, 1, 0.1, 0.0)
    >>> near_peak(circle, circle.attention(circle.model.positions[[2]])).int().tolist()
    [[0, 1, 1, 1, 0, 0, 0, 0]]
    """
    positions = circle.model.positions
    return positions[first_largest(gamma)] @ positions.T > 2**-0.5 - 1e-12

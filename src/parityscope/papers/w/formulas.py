"""The equations of W's appendix: the sums as printed and, where those are misprints, as they come out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.w.instance import Instance, Statistics, expected_alpha, places
from parityscope.problems.sequences import ParitySequences

_PARITY = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)  # (−1)^{b1+b2}


def own_gradient(of: Instance) -> Float[Tensor, "neurons d"]:
    """Return Lemma 12's gradient of W_{r,1:d}: (h_r/B) Σ 1(ν_{r,i,b} > 0) δ_{i,b} e_{i,b}."""
    weighted = torch.einsum("rib,ib->rib", of.active, of.statistics.delta)
    sums = torch.einsum("rib,ibd->rd", weighted, of.block.embeddings[of.task.n :])
    return of.block.h[:, None] / of.statistics.count * sums


def attended_gradient(of: Instance, alpha: Float[Tensor, "links T 2 2"] | None = None) -> Float[Tensor, "neurons d"]:
    """Return the gradient of W_{r,d+1:2d} at uniform attention, (h_r/B) Σ (1/i) 1(ν_{r,i,b2} > 0) α e_{j,b1}."""
    alpha = of.statistics.alpha if alpha is None else alpha
    weighted = torch.einsum("i,rib,ijab->rja", 1 / of.place, of.active, alpha)
    return of.block.h[:, None] / of.statistics.count * torch.einsum("rja,jad->rd", weighted, of.block.embeddings)


def attended_gradient_as_printed(of: Instance) -> Float[Tensor, "neurons d"]:
    """Return the same with ᾱ, the expectation of α, on the secret, as Lemmas 14 and 17 print it."""
    alpha = of.statistics.alpha.clone()
    alpha[torch.arange(of.task.k), list(of.task.secret)] = of.statistics.count * expected_alpha(of.task)
    return attended_gradient(of, alpha)


@dataclass(frozen=True)
class TableOne:
    """The statistics of W's Table 1 for one batch and one start.

    >>> from parityscope.papers.w.instance import instance
    >>> made = instance(n=4, k=2, d=64, m=2)  # every input once
    >>> table = table_1(made.task, made.statistics, made.active)
    >>> [float(one.abs().max()) for one in (table.delta, table.alpha_off_mean, table.beta, table.psi, table.zeta)]
    [0.0, 0.0, 0.0, 0.0, 0.0]
    """

    delta: Float[Tensor, "links 2"]
    alpha_off_mean: Float[Tensor, "links T 2 2"]  # α − ᾱ
    beta: Float[Tensor, "T 2"]
    psi: Float[Tensor, "neurons T 2"]
    gamma: Float[Tensor, "links 2 links 2"]
    zeta: Float[Tensor, "links 2 T 2"]


def table_1(task: ParitySequences, counted: Statistics, active: Float[Tensor, "neurons links 2"]) -> TableOne:
    """Count everything that Table 1 defines."""
    k, m, place = task.k, len(active) // 2, places(task)
    on_secret = torch.arange(k), list(task.secret)
    mean, elsewhere = torch.zeros_like(counted.alpha), counted.alpha.clone()
    mean[on_secret] = counted.count * expected_alpha(task)
    elsewhere[on_secret] = 0  # β and ψ leave out i with S[i] = j
    psi = torch.einsum("i,rib,ijab->rja", 1 / place, active, elsewhere)
    together = torch.einsum("rib,rjc->ibjc", active, active)
    same = torch.eye(2 * k, dtype=torch.float64).reshape(k, 2, k, 2)
    return TableOne(
        counted.delta,
        counted.alpha - mean,
        torch.einsum("i,ijab->ja", 1 / place, elsewhere),
        psi,
        (together - (1 + same) / 2 * m) / place[None, None, :, None],
        torch.einsum("rib,rja->ibja", active, psi),
    )


def kappa(of: Instance) -> Float[Tensor, "links 2 d"]:
    """Return κ_{1,i,b} for η₀ = 1 from the gradient: Σ 1(ν_{r,i,b} > 0) h_r dL/dW_{r,d+1:2d}."""
    return torch.einsum("rib,r,rd->ibd", of.active, of.block.h, of.gradient_attended)


def kappa_as_printed(of: Instance) -> Float[Tensor, "links 2 d"]:
    """Return Lemma 18's κ_{1,i,b} for η₀ = 1: a main term, one with γ and one with ζ."""
    B, m, table, mean = of.statistics.count, of.m, table_1(of.task, of.statistics, of.active), expected_alpha(of.task)
    secret = of.block.embeddings[list(of.task.secret)]
    main = torch.einsum("i,iab,iad->ibd", 1 / (8 * m * of.place), mean, secret)
    of_gamma = torch.einsum("ibjc,jac,jad->ibd", table.gamma, mean, secret) / (4 * m**2)
    of_zeta = torch.einsum("ibja,jad->ibd", table.zeta, of.block.embeddings) / (4 * B * m**2)
    return main + of_gamma + of_zeta


def kappa_left_out(of: Instance) -> Float[Tensor, " d"]:
    """Return what Lemma 18 leaves out, (1/8Bm(n+1)) Σ ᾱ_{n+1,S[n+1],b1,b2} e_{S[n+1],b1}: the first token is always 0.

    >>> from parityscope.papers.w.instance import instance
    >>> made = instance(n=4, k=2, d=64, m=2)
    >>> torch.allclose(kappa_as_printed(made) + kappa_left_out(made), kappa(made))
    True
    """
    first = of.block.embeddings[of.task.secret[0]]
    return torch.einsum("ab,ad->d", expected_alpha(of.task)[0], first) / (8 * of.m * (of.task.n + 1))


def third_gradient_as_printed(of: Instance) -> Float[Tensor, "neurons d"]:
    """Return Lemma 23's gradient of W_{r,d+1:2d}: h_r Σ (1/i) 1(ν_{r,i,b2} > 0) (−1)^{b1+b2} e_{S[i],b1}."""
    return _on_secret(of, _PARITY[None] / of.place[:, None, None])


def third_gradient(of: Instance) -> Float[Tensor, "neurons d"]:
    """Return the same with the counted α/B for the printed 1/i: attention is one-hot by then.

    Its mean ᾱ/B is ±¼, and ±½ at i = n + 1.

    >>> from parityscope.papers.w.instance import instance
    >>> torch.equal(third_gradient(made := instance(n=4, k=2, d=64, m=2)), _on_secret(made, expected_alpha(made.task)))
    True
    """
    return _on_secret(of, of.statistics.alpha[torch.arange(of.task.k), list(of.task.secret)] / of.statistics.count)


def _on_secret(of: Instance, weight: Float[Tensor, "links 2 2"]) -> Float[Tensor, "neurons d"]:
    secret = of.block.embeddings[list(of.task.secret)]
    return torch.einsum("r,rib,iab,iad->rd", of.block.h, of.active, weight, secret)


def softmax_slope(
    X: Float[Tensor, "tokens d"], attention: Float[Tensor, " tokens"], j: int, i: int
) -> Float[Tensor, "d d"]:
    """Return Lemma 20's derivative of attention j at i with respect to A: γ_j (e_j − Σ_p γ_p e_p) e_iᵀ."""
    return attention[j] * torch.outer(X[j] - attention @ X, X[i])


def slope_of_attention(
    X: Float[Tensor, "tokens d"], attention: Float[Tensor, " tokens"], kappa_here: Float[Tensor, " d"], sign: int
) -> Float[Tensor, "d d"]:
    """Return Lemma 20's derivative of the loss at the last token: −(−1)^{b[i+1]} Σ_j ⟨κ, e_j⟩ times the softmax's.

    >>> half = torch.tensor([0.5, 0.5])
    >>> slope_of_attention(torch.eye(2), half, torch.tensor([1.0, 0.0]), sign=1)[:, 1].tolist()
    [-0.25, 0.25]
    """
    i = len(X) - 1
    slopes = torch.stack([softmax_slope(X, attention, j, i) for j in range(len(X))])
    return -sign * torch.einsum("j,jde->de", X @ kappa_here, slopes)

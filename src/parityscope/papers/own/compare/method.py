"""What a method is given, what it gives back, and how many examples it needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Int8
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.threads import single_threaded
from parityscope.core.ties import predicts_plus
from parityscope.papers.k.chain import ParityTree
from parityscope.problems import Parity, seeded_generator

Supervision = Literal["labels", "labels and a chain", "labels and a tree"]
SUPERVISIONS: tuple[Supervision, ...] = get_args(Supervision)
LEARNED = 0.99  # of fresh inputs, without noise
_HELD_OUT = 2000
_FIRST = 32
# Seeds that choose the number of examples. Settings were tried on seeds near 0, and success is counted from 1000 on.
_OTHERS = range(500, 508)


class Unsuitable(InvalidInput):
    """A method is not made for this n and k; the sentence says what it is made for."""


class Task(NamedTuple):
    """What a method is told besides its examples.

    Parameters
    ----------
    n, k : int
        Bits, and how many of them are hidden.
    seed : int
        For random choices of the method's own.
    steps : Tensor or None
        The intermediate values, ±1, of methods that are shown them, the label last: the k partial products of the
        hidden bits in ascending order (a chain), or the k − 1 inner nodes of a binary tree over them, from below (a
        tree). Each is flipped with the probability of the noise, as labels are.
    """

    n: int
    k: int
    seed: int = 0
    steps: Int8[Tensor, "N steps"] | None = None


class Answer(NamedTuple):
    """What a method gives back.

    Parameters
    ----------
    predict : callable
        Takes bits of shape (N, n) and returns N numbers, whose signs are the predicted labels.
    gradient_steps, parameters : int
        Updates that were made, and trainable parameters; 0 where there are none.
    multiply_adds : float or None
        Of all products of matrices, forward and backward; None: not counted.
    """

    predict: Callable[[Int8[Tensor, "N n"]], Tensor]
    gradient_steps: int = 0
    parameters: int = 0
    multiply_adds: float | None = None


Solve = Callable[[Int8[Tensor, "N n"], Int8[Tensor, " N"], Task], Answer]


class Method(NamedTuple):
    """A line of the table."""

    solve: Solve
    supervision: Supervision = "labels"


class Budget(NamedTuple):
    """What a method may use in one training; the clock stops it after the first training that took longer.

    A method that counts no operations is stopped by the other two.
    """

    examples: int = 2**18
    multiply_adds: float = 3e11
    seconds: float = 4.0  # of the processor


class Trial(NamedTuple):
    """One training: how many fresh inputs are classified correctly, what it took, and what came out."""

    accuracy: float
    seconds: float
    answer: Answer


def examples_of(
    problem: Parity, count: int, seed: int, supervision: Supervision
) -> tuple[Int8[Tensor, "count n"], Int8[Tensor, " count"], Task]:
    """Draw the examples of one seed, as a method gets them.

    >>> x, y, task = examples_of(Parity(6, (0, 2, 3)), 4, 0, "labels and a chain")
    >>> tuple(x.shape), tuple(task.steps.shape), bool((task.steps[:, -1] == y).all())
    ((4, 6), (4, 3), True)
    """
    generator = seeded_generator(seed, "data")
    x, y = problem.sample(count, generator)
    told = Task(problem.n, problem.k, seed)
    if supervision == "labels":
        return x, y, told
    signs = 1 - 2 * x
    if supervision == "labels and a chain":
        steps = signs[:, list(problem.support)].cumprod(1)
    elif problem.k & (problem.k - 1):
        raise Unsuitable("k = 2, 4, 8, … only")
    else:
        steps = ParityTree(problem).chain(signs)[:, problem.n :]
    flipped: Bool[Tensor, "count steps"] = torch.rand(steps.shape, generator=generator) < problem.noise
    steps = torch.where(flipped, -steps, steps).to(torch.int8)
    steps[:, -1] = y
    return x, y, told._replace(steps=steps)


def tried(method: Method, problem: Parity, count: int, seed: int) -> Trial:
    """Train once, on one thread, and classify fresh inputs."""
    x, y, task = examples_of(problem, count, seed, method.supervision)
    with single_threaded():
        started = time.process_time()
        answer = method.solve(x, y, task)
        seconds = time.process_time() - started
        fresh = torch.randint(
            0, 2, (_HELD_OUT, problem.n), generator=seeded_generator(seed, "held-out"), dtype=torch.int8
        )
        if not isinstance(answer, Answer):
            raise InvalidInput(f"solve returned a {type(answer).__name__}: return an Answer")
        with torch.no_grad():
            said = torch.as_tensor(answer.predict(fresh)).float().flatten()
    if len(said) != len(fresh):
        raise InvalidInput(f"predict returned {len(said)} numbers for {len(fresh)} inputs: return one for each")
    right = predicts_plus(said) == (problem.label(fresh) > 0)
    return Trial(float(right.float().mean()), seconds, answer)


class Climb(NamedTuple):
    """The fewest examples that were enough on other seeds, or none within the budget, and the last trial."""

    examples: int | None
    largest: int
    last: Trial


def fewest_examples(method: Method, problem_of: Callable[[int], Parity], budget: Budget) -> Climb:
    """Double the number of examples until eight other seeds all learn, or the budget is used up."""
    count = _FIRST
    while True:
        for seed in _OTHERS:
            last = tried(method, problem_of(seed), count, seed)
            if last.accuracy <= LEARNED:
                break
        else:
            return Climb(count, count, last)
        operations = last.answer.multiply_adds or 0.0
        if 2 * count > budget.examples or 2 * operations > budget.multiply_adds or last.seconds > budget.seconds:
            return Climb(None, count, last)
        count *= 2


def fresh_trials(method: Method, problem_of: Callable[[int], Parity], count: int, seeds: Sequence[int]) -> list[Trial]:
    """Train on seeds that had no part in choosing the number of examples."""
    return [tried(method, problem_of(seed), count, seed) for seed in seeds]

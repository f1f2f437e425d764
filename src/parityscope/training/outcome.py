"""What a training found, one row per seed: for people, for JSON and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.core.statistics import Share, wilson_share
from parityscope.core.ties import SCORE_TIE
from parityscope.measures import AccuracyKind
from parityscope.models import ParityTransformer
from parityscope.problems import Parity
from parityscope.training.attention_path import Evidence
from parityscope.training.recipes import Recipe
from parityscope.training.steps.certificate import Certificate

if TYPE_CHECKING:
    import pandas

LEARNED_ACCURACY = 0.99
_SEEDS_SHOWN = 4


@dataclass(frozen=True, repr=False)
class LearnedRuns:
    """The outcome of a training, one row per seed. `learn` makes it.

    Parameters
    ----------
    problems : tuple of Parity
        What each run learned.
    recipes : tuple of Recipe
        How each run learned it, every value resolved; `recipe` is the one they share.
    seeds : tuple of int
        The seed of each run.
    model : ParityTransformer
        As trained, with a leading run axis.
    engine : str
        How the risk was computed.
    risk : Tensor (runs,)
        Population risk without label noise, of the hinge where the training descended on log-correlation.
    accuracy : Tensor (runs,)
        The share of all 2^n inputs classified right.
    accuracy_kind : str
        Whether that is "exact", a "lower bound" or an "estimate".
    worst_loss : Tensor (runs,) or None
        The largest hinge loss over all inputs, where the readout gives a certificate.
    certificate : Certificate or None
        What the steps prove of −log C, where they prove something.
    evidence : Evidence or None
        How sure the named bits are, where examples named them before the training or k was not told.
    attention : Tensor (runs, heads, n)
        Where each head looks.
    found : Tensor (runs, k)
        The support each run names, ascending; where k was not told, (runs, k_at_most), and −1 in places left over.
    steps : Tensor (runs,)
        The steps each run took.
    diverged : Tensor (runs,)
        Whose risk or gradient was no longer finite.
    history_steps, history_risk : Tensor (points,), Tensor (points, runs)
        What descended, as it was recorded.
    samples, batch : int or None
        Drawn examples per run, or fresh ones per step, where it was not the population.
    seconds : float
        How long the training took.

    >>> from parityscope.training.learning import learn
    >>> run = learn(Parity(1000, (1, 5)), "one-step", seeds=range(3))
    >>> run
    LearnedRuns(one-step at n = 1000, k = 2: 3/3 (44%–100%) learned from the population, seeds 0, 1, 2)
    >>> run.accuracy.tolist(), run.accuracy_kind, run.steps.tolist()
    ([1.0, 1.0, 1.0], 'exact', [1, 1, 1])
    """

    problems: tuple[Parity, ...]
    recipes: tuple[Recipe, ...]
    seeds: tuple[int, ...]
    model: ParityTransformer
    engine: str
    risk: Float[Tensor, " runs"]
    accuracy: Float[Tensor, " runs"]
    accuracy_kind: AccuracyKind
    worst_loss: Float[Tensor, " runs"] | None
    certificate: Certificate | None
    evidence: Evidence | None
    attention: Float[Tensor, "runs heads n"]
    found: Int64[Tensor, "runs k"]
    steps: Int64[Tensor, " runs"]
    diverged: Bool[Tensor, " runs"]
    history_steps: Int64[Tensor, " points"]
    history_risk: Float[Tensor, "points runs"]
    samples: int | None
    batch: int | None
    seconds: float

    @property
    def recipe(self) -> Recipe:
        """The recipe of all runs; refused where they have recipes of their own."""
        if differing := self._differing():
            raise InvalidInput(f"the runs have recipes of their own, which differ in {differing[0]}: see `recipes`")
        return self.recipes[0]

    @property
    def recovered(self) -> Bool[Tensor, " runs"]:
        """Which runs found exactly the hidden support."""
        support = torch.full_like(self.found, -1)
        support[:, : self.problems[0].k] = torch.tensor([problem.support for problem in self.problems])
        return (self.found == support).all(-1)

    @property
    def learned(self) -> Bool[Tensor, " runs"]:
        """Which runs classify more than 99 % of all inputs right and name the support."""
        return (self.accuracy > LEARNED_ACCURACY) & self.recovered

    @property
    def proved(self) -> tuple[str, ...]:
        """What is proved of every run, in words: that no input is wrong, and what its steps prove.

        >>> from parityscope.training.learning import learn
        >>> learn(Parity(20, (1, 5)), "concave", positions="circle").proved
        ('no face of the code: C ≤ 0.0958 whatever the numbers',)
        """
        worst = [1.0] * len(self.seeds) if self.worst_loss is None else self.worst_loss.tolist()
        right = [f"every input right: worst loss {loss:.3g}" if loss < 1 - SCORE_TIE else "" for loss in worst]
        steps = ("",) * len(right) if self.certificate is None else self.certificate.sentences()
        return tuple("; ".join(filter(None, pair)) for pair in zip(right, steps, strict=True))

    @property
    def success(self) -> Share:
        """The share of runs that learned, with its confidence interval."""
        return wilson_share(int(self.learned.sum()), len(self.seeds))

    def frame(self) -> pandas.DataFrame:
        """Return a table of pandas, one row per seed, with a column for every setting in which the runs differ.

        >>> from parityscope.training.learning import learn
        >>> learn(Parity(12, (1, 5)), seeds=range(3)).frame()[["seed", "found", "learned"]]
           seed   found  learned
        0     0  (1, 5)     True
        1     1  (1, 5)     True
        2     2  (1, 5)     True
        """
        with naming_the_extra():
            import pandas
        rows = [self._run_json(row, self._differing()) for row in range(len(self.seeds))]
        for line, learned in zip(rows, self.learned.tolist(), strict=True):
            own = line.pop("settings", {})
            line.update(support=tuple(line["support"]), found=tuple(line["found"]), learned=learned, **own)
        return pandas.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `learn --json` prints; runs say their own settings where they differ."""
        differing = self._differing()
        return {
            "n": self.problems[0].n,
            "k": self.problems[0].k,
            "recipe": self._recipe_name,
            "engine": self.engine,
            "parameters": self.model.trained_parameters(),
            "samples": self.samples,
            "batch": self.batch,
            "noise": self.problems[0].noise,
            "accuracy_is": self.accuracy_kind,
            "learned": self.success._asdict(),
            "settings": self.recipes[0].model_dump(mode="json", exclude={"name", "summary", *differing}),
            "runs": [self._run_json(row, differing) for row in range(len(self.seeds))],
            "seconds": round(self.seconds, 3),
        }

    def _run_json(self, row: int, differing: list[str]) -> dict[str, Any]:
        own = self.recipes[row].model_dump(mode="json", include=set(differing))
        return {
            "seed": self.seeds[row],
            "support": list(self.problems[row].support),
            "risk": float(self.risk[row]),
            "accuracy": float(self.accuracy[row]),
            "worst_loss": None if self.worst_loss is None else float(self.worst_loss[row]),
            "found": [position for position in self.found[row].tolist() if position >= 0],
            "recovered": bool(self.recovered[row]),
            "steps": int(self.steps[row]),
            "diverged": bool(self.diverged[row]),
            "proved": self.proved[row],
            **({} if self.evidence is None else {"evidence": self.evidence.sentences()[row]}),
            **({"settings": own} if differing else {}),
        }

    def _differing(self) -> list[str]:
        """Return the settings in which the runs differ."""
        first, distinct = self.recipes[0], {id(one): one for one in self.recipes}.values()
        fields = [name for name in Recipe.model_fields if name not in ("name", "summary")]
        return [name for name in fields if any(getattr(one, name) != getattr(first, name) for one in distinct)]

    @property
    def _recipe_name(self) -> str:
        return ", ".join(dict.fromkeys(recipe.name for recipe in self.recipes))

    def __repr__(self) -> str:
        source = "the population" if self.samples is None else f"{self.samples} examples"
        source = source if self.batch is None else f"batches of {self.batch}"
        shown = ", ".join(map(str, self.seeds[:_SEEDS_SHOWN])) + (", …" if len(self.seeds) > _SEEDS_SHOWN else "")
        return (
            f"LearnedRuns({self._recipe_name} at n = {self.problems[0].n}, k = {self.problems[0].k}:"
            f" {self.success} learned from {source}, seeds {shown})"
        )

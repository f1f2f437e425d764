"""The lattice behind the interface of engines: any attention at any n, run by run."""

from __future__ import annotations

from functools import partial

from parityscope.core.engine_cards import CARDS
from parityscope.risk.engine import Job, OnPieces, one_by_one
from parityscope.risk.lattice import LOOSE, lattice_risk
from parityscope.risk.runs import Mean

# Seconds at a tolerance of 1e-9, measured by benchmarks/lattice.py: a run, and a position of it.
_RUN, _POSITION, _MOST = 0.15, 0.02, 10.0
_RUN_IF_LOOSE, _PAIR_IF_LOOSE = 0.03, 3e-6  # for a tolerance as of a training: a run, and a position times n


class Lattice(OnPieces):
    """The law of the score over the cells of a lattice, with the moments of what rounding leaves out.

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk.law import law_of
    >>> from parityscope.risk.losses import named_loss
    >>> job = Job(ParityTransformer(60, 3, temperature=0.5), law_of(Parity(60, (0, 20, 40))), named_loss("hinge"))
    >>> bool(Lattice().evaluate(job).error_bound < 1e-9)
    True
    """

    card = CARDS["lattice"]
    foresees = False  # what it reaches depends on the weights
    fair_bits = False

    def limit(self, job: Job) -> str | None:
        """It ends when its budget is spent, and says what it has reached."""
        return None

    def cost(self, job: Job) -> float:
        """A pass over the positions, on as many cells as the budget allows."""
        loose = job.tolerance >= LOOSE
        run = _RUN_IF_LOOSE + _PAIR_IF_LOOSE * job.n**2 if loose else _RUN + _POSITION * job.n
        return self.fit_seconds(job) + job.count * min(run, _MOST)

    def takes_any_bound(self, job: Job) -> bool:
        """A share of right signs jumps: its interval is narrow, and never as narrow as the error of a mean loss."""
        return job.loss is None

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run, with a proved bound on its gradient too."""
        wanted = job.loss is not None and job.runs.want_gradient
        return one_by_one(job, partial(lattice_risk, tolerance=job.tolerance, bias=job.law.bias, want_gradient=wanted))

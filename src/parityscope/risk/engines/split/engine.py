"""The split engine for readouts that are frozen and for sums of ReLUs that train."""

from __future__ import annotations

from parityscope.risk.cards import CARDS
from parityscope.risk.engine import NEEDS_A_SCORE, Job, OnPieces, Refusal
from parityscope.risk.engines.split import sums as split
from parityscope.risk.engines.split.relu_readout import relu_sum_accuracy, relu_sum_mean
from parityscope.risk.engines.split.tables import MOST_SCORES, table_size
from parityscope.risk.engines.subsets import subset_count
from parityscope.risk.means import Mean
from parityscope.risk.pieces.represent import HINGE_POWERS
from parityscope.risk.pieces.rounding import visited_rounding

# Seconds, fitted by benchmarks/engine_costs.py: a call, a score visited, a run, a sorted sum, a piece looked up.
_CALL, _SCORE, _RUN, _SUM, _LOOK_UP = 9e-4, 3.5e-8, 5e-6, 5.4e-8, 5.4e-8
_SMALL_CALL = 5e-4
_FITTED_PIECES = 150  # about how many


class Split(OnPieces):
    """Sort the sums of half of the positions and look up those of the others.

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk.law import law_of
    >>> from parityscope.risk.losses import named_loss
    >>> job = Job(ParityTransformer(60, 3), law_of(Parity(60, (0, 1, 2))), named_loss("hinge"))
    >>> Split().refuses(job).reason
    'needs about 258 GB at n = 60, k = 3 and stops at 8 GB'
    """

    card = CARDS["split"]
    fair_bits = False

    def refuses(self, job: Job) -> Refusal | None:
        """Besides frozen readouts, sums of ReLUs that train with hinge losses; the tables must fit in memory."""
        if job.score is None:
            return NEEDS_A_SCORE
        if job.score.readout.relu_sum() is None:
            if (refusal := super().refuses(job)) is not None:
                return refusal
        elif job.loss is not None and job.loss.name not in HINGE_POWERS:
            return Refusal(f"trains a readout with hinge losses only, not with {job.loss.name}")
        if (needed := split.required_bytes(job.n, job.k)) <= split.MEMORY_LIMIT:
            return None
        sizes = f"{needed / 1e9:.0f} GB at n = {job.n}, k = {job.k} and stops at {split.MEMORY_LIMIT / 1e9:.0f} GB"
        return Refusal(f"needs about {sizes}", too_large=True)

    def cost(self, job: Job) -> float:
        """Every score at small n; else a sort of the table and a look-up per query and piece."""
        runs, n = job.count, job.n
        fit = self.fit_seconds(job)
        if runs << n <= MOST_SCORES:
            return fit + _SMALL_CALL + _SCORE * (runs << n)
        table = table_size(n, job.k)
        queries = subset_count(n - table)
        return fit + _CALL + runs * (_RUN + _SUM * subset_count(table) + _LOOK_UP * self._pieces(job) * queries)

    @staticmethod
    def _pieces(job: Job) -> int:
        """How many pieces there are: those of a fit are not known before it is made."""
        if not job.frozen or not job.exact or job.pieces is None:
            return _FITTED_PIECES if job.frozen else 10
        return max(len(side.centres) for side in job.pieces.sides())

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run."""
        assert job.score is not None
        relu, law = job.score.readout.relu_sum(), job.law
        if relu is not None and job.loss is None:
            return relu_sum_accuracy(job.runs, relu, bias=law.bias, reach=job.reach)
        if relu is not None and job.loss is not None:
            power = HINGE_POWERS[job.loss.name]
            return relu_sum_mean(job.runs, relu, power, bias=law.bias, noise=law.noise, reach=job.reach)
        assert job.pieces is not None
        weights, offset, mask = job.runs.tensors
        mean = split.split_mean(weights, offset, mask, job.pieces, bias=law.bias, want_gradient=job.runs.want_gradient)
        if job.count << job.n <= MOST_SCORES:
            rounding = visited_rounding(job.pieces, job.n, subset_count(job.n), *job.reach)
        else:
            rounding = split.rounding(job.pieces, job.n, job.k, job.reach)
        return mean._replace(error_bound=rounding + job.pieces.error, bound_is=job.pieces.error_is)

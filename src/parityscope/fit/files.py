"""From a file to its interactions: read a table, fit, and say everything that was found."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parityscope.core.files import write_atomically
from parityscope.core.strict_json import strict_json
from parityscope.fit.answer import Answer, Question, ask
from parityscope.fit.clock import Progress
from parityscope.fit.interactions.terms import Term
from parityscope.fit.saved import SavedModel, saved_model
from parityscope.fit.tables.coding import Coded
from parityscope.fit.tables.prepared import Prepared, prepare


@dataclass(frozen=True)
class TableFit:
    """What `parityscope fit` found in a file."""

    path: Path
    target: str
    classes: tuple[str, str] | None  # None for a measured target
    answer: Answer
    coded: Coded
    notes: tuple[str, ...]  # what to know before reading the answer
    rows: int
    features: int  # columns of the file besides the target
    seconds: float
    compared: str = ""  # with a forest, if that was asked for

    @property
    def findings(self) -> tuple[Term, ...]:
        """Every term, the largest share of what is explained first."""
        return self.answer.interactions

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the first interaction."""
        return list(self.findings[0].columns) if self.findings else []

    @property
    def bits(self) -> list[str]:
        """The questions whose parity the first interaction takes."""
        return list(self.findings[0].bits) if self.findings else []

    @property
    def ignored(self) -> dict[str, str]:
        """Columns that took no part, and why."""
        constant = {self.coded.columns[index].name: "constant" for index in self.answer.constant}
        return {**self.coded.left_out, **constant}

    def to_json(self) -> dict[str, Any]:
        """Return the object that `fit --json` prints; `accuracy` is that of held-out rows, if there are any.

        `candidate` is null but where nothing was found: it then names what came nearest, which is not significant.
        """
        answer, first = self.answer, self.findings[0] if self.findings else None
        return {
            "support": list(first.support) if first else [],
            "columns": self.columns,
            "k": len(answer.support),
            "accuracy": None if math.isnan(answer.held_out_accuracy) else answer.held_out_accuracy,
            "quality": answer.quality.to_json(),
            "p_value": answer.p_value,
            "noise_rate": None if math.isnan(answer.noise_rate) else answer.noise_rate,
            "bits": self.bits,
            "interactions": [finding.to_json() for finding in self.findings],
            "candidate": self._candidate(),
            "guarantee": answer.guarantee,
            "skipped": answer.skipped,
            "explanation": answer.explanation,
            "solver": answer.solver,
            "reason": answer.reason,
            "rule": answer.rule,
            "target": self.target,
            "classes": None if self.classes is None else list(self.classes),
            "rows": self.rows,
            "features": self.features,
            "truth_table": first.cells() if first else [],
            "ties": {self._name(c): [self._name(other) for other in others] for c, others in answer.ties.items()},
            "ignored": self.ignored,
            "notes": list(self.notes),
            "attempts": [vars(attempt) for attempt in answer.attempts],
            "seconds": round(self.seconds, 3),
            **({"compared": self.compared} if self.compared else {}),
        }

    def model(self) -> SavedModel:
        """Return what `fit --save` keeps, and `predict` needs."""
        accuracy = self.answer.held_out_accuracy
        return saved_model(
            self.answer.model,
            self.coded.columns,
            terms=tuple(" ⊕ ".join(finding.bits) for finding in self.findings),
            data=self.path.name,
            rows=self.rows,
            target=self.target,
            classes=self.classes,
            share=self.answer.share,
            held_out_accuracy=0.0 if math.isnan(accuracy) else accuracy,
            guarantee=self.answer.guarantee,
        )

    def _candidate(self) -> dict[str, Any] | None:
        """Return what came nearest where nothing was found, with its corrected p-value: it is not significant."""
        answer = self.answer
        if self.findings or answer.candidate is None:
            return None
        columns = [self._name(index) for index in answer.candidate]
        return {"columns": columns, "p_value": answer.p_value, "significant": False}

    def _name(self, index: int) -> str:
        return self.coded.columns[index].name


def fit_file(
    path: Path,
    target: str | None,
    *,
    k: int | None = None,
    max_k: int = 10,
    budget: str | float | None = None,
    seed: int = 0,
    solver: str = "auto",
    alpha: float = 0.01,
    missing: str = "refuse",
    positive: str | None = None,
    group: str | None = None,
    adjust: Sequence[str] = (),
    compare: bool = False,
    progress: Progress | None = None,
) -> TableFit:
    """Read a table, look for the interactions that decide its target column, and return what was found.

    With `compare` a forest is trained too, and the search made anew, in five folds.

    >>> import tempfile
    >>> rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 10
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("\\n".join(["a,b,c,fault", *rows]))
    >>> fitted = fit_file(path, "fault")
    >>> fitted.bits, fitted.answer.held_out_accuracy
    (['a = 1', 'c = 1'], 1.0)
    """
    question, started = Question(k, max_k, solver, alpha, budget), time.perf_counter()
    known = prepare(path, target, missing=missing, positive=positive, group=group, adjust=adjust)
    answer = answer_for(known, question, seed, progress)
    fitted = described(known, answer, time.perf_counter() - started)
    if not compare:
        return fitted
    from parityscope.fit.comparison import compared_with_forest  # it needs scikit-learn, which is slow to load

    return replace(fitted, compared=compared_with_forest(known, question, seed))


def answer_for(known: Prepared, question: Question, seed: int = 0, progress: Progress | None = None) -> Answer:
    """Return the answer to a question about a table that was read."""
    random, coded = np.random.RandomState(seed), known.coded
    return ask(
        question,
        coded.X,
        known.labels,
        random,
        coded.columns,
        progress,
        coded.unordered,
        groups=known.groups,
        covariates=known.covariates,
        measured=known.classes is None,
    )


def described(known: Prepared, answer: Answer, seconds: float) -> TableFit:
    """Return an answer with what is known of its table."""
    first = [answer.repeated] if answer.repeated else []
    notes = [*first, *known.notes, *answer.tie_sentences(known.coded.columns)]
    if not answer.interactions:
        notes.append(answer.nothing_sentence)
    return TableFit(
        known.path,
        known.target,
        known.classes,
        answer,
        known.coded,
        tuple(notes),
        len(known.labels),
        known.features,
        seconds,
    )


def write_fit(fitted: TableFit, out: Path) -> list[str]:
    """Write what was found and its picture into a folder; return the names of the files."""
    write_atomically(out / "fit.json", strict_json(fitted.to_json(), indent=2).encode())
    # Numbers first: they survive a missing plotting library.
    from parityscope.core.drawing import png, themed
    from parityscope.fit.report import interaction_figure, report

    picture = png(themed(interaction_figure, fitted))
    write_atomically(out / "interaction.png", picture)
    write_atomically(out / "report.html", report(fitted, picture).encode())
    return ["fit.json", "interaction.png", "report.html"]

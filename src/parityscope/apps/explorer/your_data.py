"""Your data: a table that was dropped on the page, its interactions, and the same search in shuffled labels.

A table is kept in memory as long as it is one of the last few; the file itself is gone as soon as it was read.
"""

from __future__ import annotations

import secrets
import shlex
import tempfile
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from parityscope.core.errors import InvalidInput
from parityscope.fit.answer import Question
from parityscope.fit.comparison import against_shuffled
from parityscope.fit.evidence.evidence import p_text
from parityscope.fit.files import answer_for, described
from parityscope.fit.tables.delimited import SUFFIXES, read_delimited
from parityscope.fit.tables.prepared import Prepared, prepare_table
from parityscope.fit.tables.table import DataTable

LARGEST_TABLE = 50_000_000  # bytes of a file
_MOST_SECONDS = 60
_KEPT = 2  # tables at a time
_NAMED = 2000  # columns that the page offers as targets
_SHOWN = 6  # interactions with a picture of their own
_SHUFFLE_SECONDS = 4.0  # for one request; the page asks again for more


class FitSettings(BaseModel):
    """A question about a kept table: the options of `parityscope fit`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    table: str
    target: str
    positive: str | None = None
    missing: str = "refuse"
    max_k: int = Field(10, ge=1, le=30)
    seconds: int = Field(10, ge=1, le=_MOST_SECONDS)
    seed: int = Field(0, ge=0, lt=2**32)

    def question(self) -> Question:
        """Return what the table is asked."""
        return Question(None, self.max_k, budget=self.seconds)

    def options(self) -> str:
        """Return what was chosen beside the target, as arguments of `prepare`."""
        chosen = {"missing": self.missing, "positive": self.positive}
        usual = {"missing": "refuse", "positive": None}
        return "".join(f", {name}={value!r}" for name, value in chosen.items() if value != usual[name])


class ShuffleSettings(FitSettings):
    """The same question with k columns, and which shuffles of the labels to try.

    >>> ShuffleSettings(table="…", target="fault", k=2, first=20).shuffles
    range(20, 30)
    """

    k: int = Field(ge=1, le=30)
    first: int = Field(0, ge=0, lt=2**31)
    count: int = Field(10, ge=1, le=50)

    @property
    def shuffles(self) -> range:
        """The seeds of the shuffles."""
        return range(self.first, self.first + self.count)


def example_table() -> str:
    """Return a table to try: of 600 machines most fail whose valve, pump and shift are odd together, and few others.

    >>> example_table().splitlines()[0]
    'site,load,filter,valve,pump,shift,fault'
    """
    draw = Random(0).random
    lines = ["site,load,filter,valve,pump,shift,fault"]
    for _ in range(600):
        site = ("Bonn", "Hof", "Kiel", "Ulm")[int(4 * draw())]
        load, worn, valve, pump, night = 20 + 60 * draw(), draw() < 0.5, draw() < 0.5, draw() < 0.5, draw() < 0.5
        fault = draw() < (0.6 if valve ^ pump ^ night else 0.08)
        names = ("worn" if worn else "new", "open" if valve else "closed", "B" if pump else "A")
        lines.append(",".join((site, f"{load:.1f}", *names, "night" if night else "day", "yes" if fault else "no")))
    return "\n".join(lines) + "\n"


@dataclass
class Kept:
    """A table that somebody sent, and how far the search in it has come."""

    name: str
    table: DataTable
    searched: tuple[float, str] = (0.0, "")


@dataclass
class Tables:
    """The tables that are kept, by a name that cannot be guessed."""

    kept: OrderedDict[str, Kept] = field(default_factory=OrderedDict)

    def take(self, name: str, content: bytes) -> dict[str, Any]:
        """Read a file and keep its table; the name is for people, and for the way it is written."""
        shown = Path(name).name[:120] or "table.csv"
        suffix = Path(shown).suffix.lower()
        if suffix not in SUFFIXES:
            raise InvalidInput(f"{shown} is of an unknown format: drop a {', '.join(SUFFIXES)} file")
        with tempfile.TemporaryDirectory(prefix="parityscope-") as folder:
            path = Path(folder) / f"table{suffix}"
            path.write_bytes(content)
            try:
                table = read_delimited(path, suffix)
            except InvalidInput as error:
                raise InvalidInput(str(error).replace(str(path), shown)) from None
        key = secrets.token_urlsafe(12)
        self.kept[key] = Kept(shown, table)
        while len(self.kept) > _KEPT:
            self.kept.popitem(last=False)
        return self.about(key)

    def about(self, key: str) -> dict[str, Any]:
        """Return what the page needs to know of a kept table."""
        kept = self._kept(key)
        table = kept.table
        missing = {table.names[place]: count for place, count in table.missing().items()}
        return {
            "table": key,
            "name": kept.name,
            "rows": table.rows,
            "features": len(table.names),
            "columns": list(table.names[-_NAMED:]),
            "target": table.names[-1],
            "missing": dict(list(missing.items())[:_NAMED]),
            "notes": list(table.notes),
        }

    def progress(self, key: str) -> dict[str, Any]:
        """Return which share of its time a search has used, and what it is doing."""
        share, doing = self._kept(key).searched
        return {"share": share, "doing": doing}

    def fit(self, settings: FitSettings, left: Event | None = None) -> dict[str, Any]:
        """Return the interactions of a kept table, as `fit --json` does, and the code that finds them.

        The search is given up once `left` is set: nobody waits for it any more.
        """
        kept, started = self._kept(settings.table), time.perf_counter()
        kept.searched = (0.0, "")
        known = _prepared(kept, settings)

        def remember(share: float, doing: str) -> None:
            kept.searched = (share, doing)
            if left is not None and left.is_set():
                raise InvalidInput("the search was given up: who asked has left")

        answer = answer_for(known, settings.question(), settings.seed, remember)
        fitted = described(known, answer, time.perf_counter() - started)
        found = fitted.to_json()
        for one, finding in zip(found["interactions"], fitted.findings, strict=True):
            one["p"] = p_text(finding.log_p)
        code = {"snippet": _snippet(kept.name, settings), "command": _command(kept.name, settings)}
        return {**found, **code, "shown": _SHOWN}

    def shuffled(self, settings: ShuffleSettings) -> dict[str, Any]:
        """Return the largest correlation of the same search in the labels as they are and in shuffled ones."""
        kept = self._kept(settings.table)
        known = _prepared(kept, settings)
        budget = min(2, settings.seconds)
        compared = against_shuffled(known, settings.k, settings.shuffles, budget=budget, seconds=_SHUFFLE_SECONDS)
        return {
            "k": compared.k,
            "observed": compared.observed,
            "shuffled": list(compared.shuffled),
            "snippet": _shuffle_snippet(kept.name, settings, budget),
        }

    def _kept(self, key: str) -> Kept:
        if key not in self.kept:
            raise InvalidInput("this table is no longer kept: choose the file again")
        self.kept.move_to_end(key)
        return self.kept[key]


def _prepared(kept: Kept, settings: FitSettings) -> Prepared:
    return prepare_table(
        kept.table, Path(kept.name), settings.target, missing=settings.missing, positive=settings.positive
    )


def _snippet(name: str, settings: FitSettings) -> str:
    return (
        "from pathlib import Path\n\n"
        "from parityscope.fit.files import fit_file\n\n"
        f"fitted = fit_file(\n    Path({name!r}), {settings.target!r}, max_k={settings.max_k}, "
        f'budget="{settings.seconds}s", seed={settings.seed}{settings.options()}\n)\n'
        "for finding in fitted.findings:\n"
        "    print(finding.bits, finding.p_value, finding.adds)\n"
        "    print(finding.truth_table)\n"
        "print(fitted.answer.guarantee)\n"
    )


def _shuffle_snippet(name: str, settings: ShuffleSettings, budget: int) -> str:
    return (
        "from pathlib import Path\n\n"
        "from parityscope.fit.comparison import against_shuffled\n"
        "from parityscope.fit.tables.prepared import prepare\n\n"
        f"known = prepare(Path({name!r}), {settings.target!r}{settings.options()})\n"
        f"compared = against_shuffled(known, {settings.k}, range(50), budget={budget}, seconds=60)\n"
        "print(compared.observed, sorted(compared.shuffled))\n"
    )


def _command(name: str, settings: FitSettings) -> str:
    options = ["--target", settings.target, "--max-k", str(settings.max_k), "--budget", f"{settings.seconds}s"]
    if settings.positive is not None:
        options += ["--positive", settings.positive]
    if settings.missing != "refuse":
        options += ["--missing", settings.missing]
    if settings.seed:
        options += ["--seed", str(settings.seed)]
    return shlex.join(["parityscope", "fit", name, *options])

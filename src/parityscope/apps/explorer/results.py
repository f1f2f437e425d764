"""Results: what a store holds, as figures, tables, verdicts, and cells that can be replayed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parityscope.apps.explorer.settings import LiveSettings
from parityscope.core.errors import InvalidInput
from parityscope.papers.figure import SCALES, PaperFigure, Scale
from parityscope.papers.registry import FIGURE_IDS, load_figure
from parityscope.papers.results import CLAIMS_ID, stored_claims, stored_rows
from parityscope.records import Row, Store

_MOST_ROWS = 5000
_REPLAYED = ("n", "k", "support", "recipe", "seed", "temperature", "learning_rate", "positions", "start_radius")


class Results:
    """A store that was named when the explorer started; nothing a browser sends is ever a path.

    >>> import tempfile
    >>> from parityscope.training.recipes import RECIPES
    >>> folder = Path(tempfile.mkdtemp())
    >>> Store(folder).add("my-sweep", RECIPES["bounded"], {"risk": 0.5}, {}, seconds=0.1)
    >>> Results(folder).summary()["experiments"]
    [{'id': 'my-sweep', 'title': 'my-sweep', 'rows': 1}]
    """

    def __init__(self, folder: Path | None) -> None:
        self._store = None if folder is None else Store(_store_folder(folder))

    def summary(self) -> dict[str, Any]:
        """Return the experiments that have rows, and the claims that were checked."""
        if self._store is None:
            return {"store": None, "experiments": [], "claims": []}
        counts: dict[str, int] = {}
        for row in self._store.rows():
            counts[row.experiment] = counts.get(row.experiment, 0) + 1
        for name in FIGURE_IDS:  # figures that draw shared rows
            if getattr(load_figure(name), "ROWS_FROM", None) in counts:
                counts[name] = len(self._of_figure(name))
        names = [name for name in FIGURE_IDS if counts.get(name)]
        names += sorted(name for name in counts if name not in FIGURE_IDS and name != CLAIMS_ID)
        return {
            "store": self._store.path.parent.name + "/" + self._store.path.name,
            "experiments": [{"id": name, "title": _title(name), "rows": counts[name]} for name in names],
            "claims": next((found for scale in reversed(SCALES) if (found := stored_claims(scale, self._store))), []),
        }

    def experiment(self, name: str) -> dict[str, Any]:
        """Return an experiment's rows with what can be replayed, and its table and findings where it is a known one."""
        rows = self._rows(name)
        content: dict[str, Any] = {
            "id": name,
            "title": _title(name),
            "rows": [_cell(row) for row in rows[:_MOST_ROWS]],
            "left_out": max(0, len(rows) - _MOST_ROWS),
        }
        if name in FIGURE_IDS:
            experiment = load_figure(name)
            scale, own = self._drawn(experiment)
            table = experiment.table(own)
            content |= {
                "text": experiment.TEXT,
                "scale": scale,
                "table": {"header": list(table.header), "rows": [list(line) for line in table.rows]},
                "findings": [finding._asdict() for finding in experiment.findings(own)],
            }
        return content

    def figure(self, name: str, theme: str) -> bytes:
        """Return the figure of a known experiment as SVG, drawn from its rows."""
        from parityscope.core.drawing import svg, themed

        self._rows(name)
        if name not in FIGURE_IDS:
            raise InvalidInput(f"{name} has no figure of its own: look at its phase diagram")
        experiment = load_figure(name)
        return svg(themed(experiment.plot, self._drawn(experiment)[1], theme="dark" if theme == "dark" else "light"))

    def _rows(self, name: str) -> list[Row]:
        rows = [] if self._store is None else self._store.rows(name) or self._of_figure(name)
        if not rows:
            raise InvalidInput(f"the store has no rows of {name!r}")
        return rows

    def _of_figure(self, name: str) -> list[Row]:
        """Return the rows a figure draws at any scale, each once."""
        assert self._store is not None
        if name not in FIGURE_IDS:
            return []
        of_scales = (stored_rows(load_figure(name), scale, self._store) for scale in SCALES)
        return list({str(row.config): row for rows in of_scales for row in rows}.values())

    def _drawn(self, experiment: PaperFigure) -> tuple[Scale, list[Row]]:
        """Return the largest scale of which every config has a row, or else the one with most rows, and its rows."""
        assert self._store is not None
        found = {scale: stored_rows(experiment, scale, self._store) for scale in SCALES}
        whole = [scale for scale in SCALES if found[scale] and len(found[scale]) == len(experiment.CONFIGS[scale])]
        scale = whole[-1] if whole else max(SCALES, key=lambda one: len(found[one]))
        if not found[scale]:
            raise InvalidInput(f"the rows of {experiment.ID} belong to no scale of this version: look at its cells")
        return scale, found[scale]


def _store_folder(folder: Path) -> Path:
    """Return the folder that holds the rows: `folder` itself, or `store` in the output of a reproduction."""
    for place in (folder, folder / "store"):
        if (place / "store.sqlite").is_file():
            return place
    raise InvalidInput(f"there is no store in {folder}: give the --out folder of reproduce or sweep")


def _title(name: str) -> str:
    return load_figure(name).TITLE if name in FIGURE_IDS else name


def _cell(row: Row) -> dict[str, Any]:
    return {"config": _flat(row.config), "numbers": _flat(row.numbers), "replay": replay(row.config)}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the single values of nested objects under dotted names; lists are left out.

    >>> _flat({"n": 12, "settings": {"learning_rate": 0.1}, "curve": [1, 2]})
    {'n': 12, 'settings.learning_rate': 0.1}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            found[prefix + name] = None
        elif value is None or isinstance(value, str | int | float | bool):
            found[prefix + name] = value
    return found


def replay(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the live settings that train a row's run again, or None for rows that are no such training.

    Training is deterministic, so a row needs no recording: its config is the recording. Of several seeds the first is
    replayed.

    >>> replay({"label": "bounded", "recipe": "bounded", "n": 12, "k": 2, "seeds": 4})
    {'n': 12, 'k': 2, 'recipe': 'bounded'}
    """
    changed = {**(config.get("settings") or {}), **(config.get("overrides") or {})}
    known = {**config, **changed}
    if "recipe" not in config or config.get("samples") or config.get("noise"):
        return None
    settings = {name: known[name] for name in _REPLAYED if known.get(name) is not None}
    if config.get("sharp_start"):
        settings["start_radius"] = float(config["n"])
    try:
        LiveSettings.model_validate(settings).resolved()
    except ValueError:
        return None
    return settings if not set(changed) - set(_REPLAYED) - {"steps"} else None

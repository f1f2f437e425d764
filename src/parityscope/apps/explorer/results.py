"""Results: what a store holds, as figures, tables, verdicts, and cells that can be replayed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from parityscope.apps.explorer.learn import LiveSettings
from parityscope.apps.reference import unpack_reference
from parityscope.core.errors import InvalidInput
from parityscope.papers.claim import ClaimCheck
from parityscope.papers.figure import SCALES, PaperFigure, Scale
from parityscope.papers.registry import FIGURE_IDS, PAPERS, load_figure
from parityscope.papers.rendering import claims_markdown, figure_markdown, to_html
from parityscope.papers.results import stored_claims, stored_rows
from parityscope.records import Config, Row, Store, StoredRow
from parityscope.runs import Training, training
from parityscope.training.recipes import RECIPES

_MOST_ROWS = 5000
_LONG = 8
_SPARSE = 20  # a scale of which less than a twentieth can be there is not looked for
_LIVE = ("temperature", "learning_rate", "positions", "start_radius", "steps")


class Results:
    """A store that was named when the explorer started, or the shipped rows; nothing a browser sends is ever a path."""

    def __init__(self, folder: Path | None) -> None:
        self._named = None if folder is None else Store(_store_folder(folder))
        self._shipped: tuple[TemporaryDirectory[str], Store] | None = None
        self._unpacking = Lock()

    @property
    def _store(self) -> Store:
        """What was named; else the rows of the reference run, unpacked when they are first asked for."""
        if self._named is not None:
            return self._named
        with self._unpacking:
            if self._shipped is None:
                folder = TemporaryDirectory(prefix="parityscope-")  # goes when this object does
                unpack_reference(Path(folder.name))
                self._shipped = folder, Store(Path(folder.name) / "store")
        return self._shipped[1]

    def summary(self) -> dict[str, Any]:
        """Return the figures that have rows, what else is stored, and the claims that were checked."""
        others = self._store.counts()
        counts = {name: self._count(load_figure(name), others) for name in FIGURE_IDS}
        counts |= {name: others[name] for name in sorted(others) if name not in (ClaimCheck.ROWS, *FIGURE_IDS)}
        by_scale = ((scale, stored_claims(scale, self._store)) for scale in reversed(SCALES))
        scale, checked = next(((scale, found) for scale, found in by_scale if found), (SCALES[0], []))
        return {
            "store": None if self._named is None else f"{self._named.path.parent.name}/{self._named.path.name}",
            "papers": _by_paper({name: count for name, count in counts.items() if count}),
            "claims": len(checked),
            "claims_html": to_html(claims_markdown(checked, scale, lambda name: f"#results?show={name}")),
        }

    def experiment(self, name: str) -> dict[str, Any]:
        """Return rows with what can be replayed; of a figure also what stands below it."""
        figure = load_figure(name) if name in FIGURE_IDS else None
        if figure is not None:
            cells = [_cell(row.config, row.numbers.model_dump()) for row in self._rows(figure)]
            count = len(cells)
        elif count := self._store.counts().get(name, 0):
            cells = [_stored_cell(row) for row in self._store.rows(name, most=_MOST_ROWS)]
        if not count:
            raise InvalidInput(f"the store has no rows of {name!r} that this code made")
        content: dict[str, Any] = {"id": name, "title": _title(name), "rows": cells[:_MOST_ROWS]}
        content["left_out"] = max(0, count - _MOST_ROWS)
        return content if figure is None else content | self._findings(figure)

    def figure(self, name: str, theme: str) -> bytes:
        """Return a figure as SVG, drawn from its rows."""
        from parityscope.core.drawing import svg, themed

        if name not in FIGURE_IDS:
            raise InvalidInput(f"the store has no rows of a figure {name!r}: look at its phase diagram")
        figure = load_figure(name)
        return svg(themed(figure.plot, self._drawn(figure)[1], theme="dark" if theme == "dark" else "light"))

    def _findings(self, figure: PaperFigure) -> dict[str, Any]:
        scale, rows = self._drawn(figure)
        claims = stored_claims(scale, self._store)
        return {"scale": scale, "html": to_html(figure_markdown(figure, rows, scale, claims))}

    def _rows(self, figure: PaperFigure) -> list[Row[Any, Any]]:
        """Return the rows a figure draws at any scale, each once: a phase diagram shows whatever there is."""
        return list({str(row.config): row for rows in self._by_scale(figure).values() for row in rows}.values())

    def _count(self, figure: PaperFigure, counts: Mapping[str, int]) -> int:
        """Return how many rows a figure draws at any scale; they are not read where its configs say which they are."""
        if hasattr(figure, "STORED"):
            return len(self._rows(figure))
        scales = _scales_in(self._store, figure, counts)
        return len(
            {one for scale, done in scales.items() for one, key in _keys_of(figure.ID, scale).items() if key in done}
        )

    def _by_scale(self, figure: PaperFigure) -> dict[Scale, list[Row[Any, Any]]]:
        """Return the rows of the scales that have any; a figure without configs has the same at every scale."""
        scales = SCALES if hasattr(figure, "STORED") else _scales_in(self._store, figure, self._store.counts())
        found = {scale: stored_rows(figure, scale, self._store) for scale in scales}
        return {scale: rows for scale, rows in found.items() if rows}

    def _drawn(self, figure: PaperFigure) -> tuple[Scale, list[Row[Any, Any]]]:
        """Return the largest scale of which every config has a row, or else the one with most rows, and its rows."""
        found = self._by_scale(figure)
        if not found:
            raise InvalidInput(f"the store has no rows of {figure.ID!r} that this code made")
        whole = [scale for scale, rows in found.items() if len(rows) >= len(figure.CONFIGS[scale])]
        scale = whole[-1] if whole else max(found, key=lambda one: len(found[one]))
        return scale, found[scale]


def _scales_in(store: Store, figure: PaperFigure, counts: Mapping[str, int]) -> dict[Scale, set[str]]:
    """Return the scales of a figure that have rows, each with the addresses of its rows."""
    found = {}
    for scale in SCALES:
        configs = figure.CONFIGS[scale]
        stored = sum(counts.get(name, 0) for name in {config.row_config().ROWS for config in configs})
        # The papers' own scales have ten thousands of configs, whose addresses take seconds: not for a few rows.
        if configs and len(configs) <= _SPARSE * stored:
            found[scale] = store.keys(among=set(_keys_of(figure.ID, scale).values()))
    return {scale: keys for scale, keys in found.items() if keys}


@cache
def _keys_of(figure_id: str, scale: Scale) -> dict[str, str]:
    """Return the address of the row of every config of a figure, which stands for itself as text."""
    return {str(config): config.row_config().key for config in load_figure(figure_id).CONFIGS[scale]}


def _store_folder(folder: Path) -> Path:
    """Return the folder that holds the rows: `folder` itself, or `store` in the output of a reproduction."""
    for place in (folder, folder / "store"):
        if (place / "store.sqlite").is_file():
            return place
    raise InvalidInput(f"there is no store in {folder}: give the --out folder of reproduce or sweep")


def _by_paper(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return what has rows, paper by paper, and last what no paper knows: the rows of sweeps."""
    groups = [(f"{paper.name}: {paper.title}", [name for name in counts if name in paper.figures]) for paper in PAPERS]
    groups.append(("Other rows", [name for name in counts if name not in FIGURE_IDS]))
    return [
        {
            "title": title,
            "experiments": [{"id": name, "title": _title(name), "rows": counts[name]} for name in names],
        }
        for title, names in groups
        if names
    ]


def _title(name: str) -> str:
    return load_figure(name).TITLE if name in FIGURE_IDS else name


def _stored_cell(row: StoredRow) -> dict[str, Any]:
    """Return the cell of a row of a sweep: of trainings, or of configs that only their spec knows."""
    if row.experiment == Training.ROWS:
        with suppress(ValueError):  # stored when trainings had other fields
            return _cell(Training.model_validate(row.config), row.numbers)
    return {"config": _flat(row.config, _written), "numbers": _flat(row.numbers, _mean), "replay": None}


def _cell(config: Config, numbers: Mapping[str, Any]) -> dict[str, Any]:
    trained = config.row_config()
    own = {name: value for name, value in config.model_dump(mode="json").items() if getattr(config, name) != trained}
    return {
        "config": _flat(own if trained is config else {**own, **trained.model_dump(mode="json")}, _written),
        "numbers": _flat(numbers, _mean),
        "replay": replay(trained) if isinstance(trained, Training) else None,
    }


def _flat(values: Mapping[str, Any], of_list: Callable[[Sequence[Any]], Any], prefix: str = "") -> dict[str, Any]:
    """Return nested objects under dotted names, a list as one value of its own."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, of_list, f"{prefix}{name}.")
            continue
        single = of_list(value) if isinstance(value, list | tuple) else value
        found[prefix + name] = None if isinstance(single, float) and not math.isfinite(single) else single
    return found


def _mean(values: Sequence[Any]) -> float | None:
    """Return the mean of numbers, so that of a training's seeds the share that learned; none of anything else."""
    numbers = [one for one in values if isinstance(one, int | float)]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None


def _written(values: Sequence[Any]) -> str:
    """Return a list as text, a long one by its ends.

    >>> _written([7, 10, 17]), _written(range(32))
    ('7,10,17', '0,…,31')
    """
    return ",".join(map(str, values if len(values) <= _LONG else (values[0], "…", values[-1])))


def replay(trained: Training) -> dict[str, Any] | None:
    """Return the live settings that train a row's run again, or None where it cannot be trained live.

    Training is deterministic, so a row needs no recording: its config is the recording. Of several seeds the first is
    replayed.
    """
    if trained.samples or trained.batch or trained.noise or trained.bias != 0.5 or trained.recipe.name not in RECIPES:
        return None
    given: dict[str, Any] = {"n": trained.n, "k": trained.k, "recipe": trained.recipe.name, "seed": trained.seeds[0]}
    if trained.support is not None:
        given["support"] = list(trained.support)
    unchanged = training(trained.recipe.name, trained.n, trained.k).recipe
    given |= {name: value for name in _LIVE if (value := getattr(trained.recipe, name)) != getattr(unchanged, name)}
    try:
        live = LiveSettings.model_validate(given)
        live.resolved()
    except ValueError:
        return None
    again = training(live.recipe, trained.n, trained.k, **live.overrides())
    return given if again.recipe == trained.recipe else None

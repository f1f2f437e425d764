"""Write what benchmarks/peers.json says into docs/results/peers.md, and draw its figure.

Run: python benchmarks/peers_page.py
"""

import json
import re
from collections import Counter
from pathlib import Path
from statistics import geometric_mean

from parityscope.core.drawing import colour, new_figure, png, themed
from parityscope.core.statistics import wilson_share
from parityscope.papers.own.fit_benchmark.planted import TableKind

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks" / "peers.json"
ORDINARY = ROOT / "benchmarks" / "peers_ordinary.json"
PAGE = ROOT / "docs" / "results" / "peers.md"
PICTURE = ROOT / "docs" / "images" / "peers.png"
OURS = ("auto", "auto, k open")
# What a page quotes stands between these two: a group's table, who wins, or how it was measured.
_QUOTED = re.compile(r"(<!-- peers:begin (?P<part>[^>]+) -->\n).*?(<!-- peers:end -->)", flags=re.S)
MARKERS = "*PosD^vX<>h"
FLOOR = 1e-3  # CPU seconds: below it the clock says little


def stored():
    return json.loads(STORED.read_text())


def methods_of(rows):
    return list(dict.fromkeys(row["method"] for row in rows))


def groups_of(rows):
    return list(dict.fromkeys(row["group"] for row in rows))


def by_kind(rows):
    """Return the rows of every kind of table, by method."""
    kinds = {}
    for row in rows:
        kinds.setdefault(str(TableKind(**row["table"])), {})[row["method"]] = row
    return kinds


def seconds_text(seconds):
    return "< 0.001 s" if seconds < FLOOR else f"{seconds:.2g} s"


def cell(row, most):
    """Return a cell of the table: found of how many and the CPU seconds; fewer tables than others is marked."""
    if row is None:
        return "·"
    if "refused" in row:
        return "–"
    count = f"{row['found']}/{row['tables']}"
    if row["found"] == row["tables"]:
        count = f"**{count}**"
    return f"{count}{'†' if row['tables'] < most else ''} {seconds_text(row['seconds'])}"


def group_table(rows, group):
    some = [row for row in rows if row["group"] == group]
    methods = methods_of(rows)
    lines = ["| tables | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for kind, scores in by_kind(some).items():
        most = max(score.get("tables", 0) for score in scores.values())
        lines.append(f"| {kind} | " + " | ".join(cell(scores.get(name), most) for name in methods) + " |")
    return "\n".join(lines) + "\n"


def share(row):
    return row["found"] / row["tables"]


def winners(rows):
    """Return a line for every kind of table on which a peer found more than `auto`, or as much in half the time."""
    lines = []
    for kind, scores in by_kind(rows).items():
        ours = scores.get("auto")
        if ours is None or "refused" in ours:
            continue
        others = [row for name, row in scores.items() if name not in OURS and "refused" not in row]
        more = [row for row in others if share(row) > share(ours)]
        quicker = [
            row
            for row in others
            if share(row) == share(ours) > 0 and max(row["seconds"], FLOOR) <= max(ours["seconds"], FLOOR) / 2
        ]
        said = [f"{row['method']} finds more ({row['found']}/{row['tables']})" for row in more]
        said += [f"{row['method']} is quicker ({seconds_text(row['seconds'])})" for row in quicker]
        if said:
            found = f"{ours['found']}/{ours['tables']}, {seconds_text(ours['seconds'])}"
            lines.append(f"- {kind} (`auto`: {found}): {', '.join(said)}.")
    return "\n".join(lines or ["- Nowhere in these tables."]) + "\n"


def totals(rows):
    """Return every method's answers over all tables of kinds that it took, and how many kinds it refused."""
    lines = ["| method | found, of the tables it was given | wrong | nothing named | kinds it refused |"]
    lines.append("|---|---|---|---|---|")
    for name in methods_of(rows):
        own = [row for row in rows if row["method"] == name]
        ran = [row for row in own if "refused" not in row]
        if not ran:
            lines.append(f"| {name} | – | – | – | {len(own)} of {len(own)} |")
            continue
        found, silent, tables = (sum(row[key] for row in ran) for key in ("found", "silent", "tables"))
        counts = f"{wilson_share(found, tables)} | {tables - found - silent} | {silent}"
        lines.append(f"| {name} | {counts} | {len(own) - len(ran)} of {len(own)} |")
    return "\n".join(lines) + "\n"


def reasons(rows):
    lines = [f"- {row['method']}, {TableKind(**row['table'])}: {row['refused']}." for row in rows if "refused" in row]
    return "\n".join(lines) + "\n"


def unmeasured(results):
    """Return how many cells of the comparison no run has reached, and of whom."""
    counts = Counter(row["method"] for row in results["rows"])
    missing = {name: results["kinds"] - counts[name] for name in results["methods"]}
    if not any(missing.values()):
        return ""
    said = ", ".join(f"{name} {count}" for name, count in missing.items() if count)
    return (
        f"Not measured yet, of {results['kinds']} kinds of tables: {said}; `python benchmarks/peers.py` goes on where "
        "it was stopped.\n"
    )


def measured(results):
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    return (
        f"Measured {results['measured']} on one of {results['cores']} cores ({results['architecture']}), Python "
        f"{results['python']}; {versions}. A method has {results['budget']:g} s of CPU time for each kind of table, "
        f"half as much before that to choose its setting, and {results['limit']:g} s for one table.\n"
        f"{unmeasured(results)}"
    )


def ordinary_cell(row):
    """Return a cell: the area under the ROC curve, tables with all planted interactions named, and the seconds."""
    if row is None:
        return "–"
    area = [f"AUC {row['area']:.3f}"] if "area" in row else []
    named = [f"{row['right']}/{row['tables']}, {row['false']} false"] if "right" in row else []
    return ", ".join([*area, *named, seconds_text(row["seconds"])])


def ordinary_table(rows):
    """Return the table of ordinary tables, and who does best on each kind."""
    methods, kinds = methods_of(rows), list(dict.fromkeys(row["kind"] for row in rows))
    scores = {(row["kind"], row["method"]): row for row in rows}
    lines = ["| tables | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for kind in kinds:
        lines.append(f"| {kind} | " + " | ".join(ordinary_cell(scores.get((kind, name))) for name in methods) + " |")
    lines.append("")
    lines += [f"- {kind}: {ordinary_winner([row for row in rows if row['kind'] == kind])}." for kind in kinds]
    return "\n".join(lines) + "\n"


def ordinary_winner(rows):
    """Say who predicts best, by a hundredth at least, and who names the interactions as well as `fit` but sooner."""
    ours = next(row for row in rows if row["method"] == "fit")
    best = max((row for row in rows if "area" in row), key=lambda row: row["area"])
    said = "nobody predicts better than `fit` by 0.01"
    if best["area"] > ours["area"] + 0.01:
        said = f"**{best['method']} predicts better** ({best['area']:.3f} against {ours['area']:.3f})"
    others = [row for row in rows if row is not ours and "right" in row]
    quicker = [
        f"{row['method']} is quicker ({seconds_text(row['seconds'])})"
        for row in others
        if (row["right"], -row["false"]) >= (ours["right"], -ours["false"]) and row["seconds"] <= ours["seconds"] / 2
    ]
    return "; ".join([said, *quicker])


def quoted(page, results):
    """Return the text of the page with its tables from these results."""
    rows = results["rows"]
    parts = {"winners": lambda: winners(rows), "totals": lambda: totals(rows), "refused": lambda: reasons(rows)}
    parts["measured"] = lambda: measured(results)
    parts["ordinary tables"] = lambda: ordinary_table(json.loads(ORDINARY.read_text()))

    def part(match):
        write = parts.get(match["part"], lambda: group_table(rows, match["part"]))
        return match[1] + write() + match[3]

    return _QUOTED.sub(part, page)


def group_points(rows, group):
    """Return (method, share, seconds, whole) for a group: kinds that a method refused count as not found.

    A method that has not been measured on all kinds of the group has no point: it would be compared on other tables.
    """
    some = [row for row in rows if row["group"] == group]
    kinds = len(by_kind(some))
    points = []
    for name in methods_of(rows):
        own = [row for row in some if row["method"] == name]
        ran = [row for row in own if "refused" not in row]
        if ran and len(own) == kinds:
            seconds = geometric_mean(max(row["seconds"], FLOOR) for row in ran)
            points.append((name, sum(map(share, ran)) / len(own), seconds, len(ran) == len(own)))
    return points


def draw(rows):
    """Draw the share of tables found against CPU seconds, one panel a group."""
    groups, methods = groups_of(rows), methods_of(rows)
    lines = -(-len(groups) // 3)
    figure, panels = new_figure(11, 3.6 * lines + 0.7, lines, 3, sharex=True, sharey=True, squeeze=False)
    looks = {name: look_of(name, place) for place, name in enumerate(methods)}
    for axes, group in zip(panels.flat, groups, strict=False):
        kinds = len(by_kind([row for row in rows if row["group"] == group]))
        for name, found, seconds, whole in group_points(rows, group):
            look = looks[name] if whole else {**looks[name], "markerfacecolor": "none"}
            axes.plot(seconds, found, clip_on=False, zorder=3 if name in OURS else 2, **look)
        axes.set(xscale="log", title=f"{group} ({kinds} kinds)", ylim=(-0.03, 1.03), xlim=(FLOOR / 1.5, 60))
        axes.grid(True, linewidth=0.5)
    for axes in panels.flat[len(groups) :]:
        axes.set_visible(False)
    for axes in panels[-1]:
        axes.set_xlabel("CPU seconds per table")
    for axes in panels[:, 0]:
        axes.set_ylabel("tables found")
    # Marks of the legend are full, whatever those in the panels are.
    shown = [panels[0, 0].plot([], [], label=name, **looks[name])[0] for name in methods]
    figure.legend(shown, methods, loc="outside lower center", ncols=6)
    return figure


def look_of(name, place):
    """Return how a method is drawn: ours in one colour, every method with a mark of its own."""
    ink = colour(0) if name in OURS else colour(1 + place % 5)
    size = 13 if name == "auto" else 8
    return {"marker": MARKERS[place % len(MARKERS)], "color": ink, "markersize": size, "linestyle": "none"}


if __name__ == "__main__":
    results = stored()
    PAGE.write_text(quoted(PAGE.read_text(), results))
    PICTURE.write_bytes(png(themed(draw, results["rows"])))

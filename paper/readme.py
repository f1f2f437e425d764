"""Every number of the README with the row behind it: the shortest write-up quotes the rows as the paper does.

    python paper/readme.py reference-output      # writes docs/results/readme-numbers.md, and compares

What its commands and examples print is compared by running them (tests/test_readme.py).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evidence import PROJECT, Evidence

from parityscope.core.files import write_atomically
from parityscope.papers.h1.descents import Ends
from parityscope.papers.h1.trainings import FIGURE_2, SEPARATE, coded_heads
from parityscope.papers.rendering import tallies, whose
from parityscope.papers.w.figures.samples import FOUR_HEADS
from parityscope.papers.w.settings import ANSWER, CHAIN, cells_by

README, PAGE = PROJECT / "README.md", PROJECT / "docs" / "results" / "readme-numbers.md"
FRONTIER = PROJECT / "benchmarks" / "fit_frontier.json"
# What is not measured but chosen or defined: sizes of examples, formulas, versions, the names of things.
_NO_MEASUREMENT = re.compile(
    r"\b[A-Z]\d\b|(Theorem|Figure|Lemma|Proposition|Assumption|Section)s? \d+( (to|and) \d+)*|arXiv [\d.v]+|"
    r"2ⁿ|2\^\(n/2\)|\bk [=≤] \d+|\b\d?k\b( − 1)?|\bn\^\(k−1\)|\d?⌈[^⌉]*⌉|±1|1/n|3\.1\d\+?|n = [\d ⁵]+|"
    r"Qwen2-7B|GSM8K|parity5\+5|A = 0|(near|exactly|risk|gradient) 0\b|risk 1\b|\(\d[\d ]*, \d+\)|risk to 0\b|"
    r"N = [\d ]+|\d+ minutes|where 1 % is allowed|99 % of all inputs|95 % interval|10⁻⁹|2⁴⁰|about 20 bits|GF\(2\)|"
    r"800 rows and 60 columns|15 % of the labels|exit code 2"
)


class Quote(NamedTuple):
    """A piece of the README's text that holds numbers, and the command or file whose rows they are counted from."""

    text: str
    source: str


def quotes(evidence: Evidence) -> list[Quote]:
    """Return every piece with measured numbers, as the rows have it now."""
    return [quote for section in (_film, _heads, _concave, _chain, _fit, _verdicts) for quote in section(evidence)]


def _figure(name: str) -> str:
    return f"`parityscope reproduce {name} --scale reference`"


def _film(evidence: Evidence) -> Iterator[Quote]:
    films = {row.config.training.recipe.name: row for row in evidence.rows("heads-lock-on")}
    slow = coded_heads(20, SEPARATE, *FIGURE_2["reference"])
    (longer,) = (row for row in evidence.rows("H1-figure-2") if row.config.training == slow)
    usual = films["as-coded"].config.training.recipe
    assert slow.recipe.learning_rate == 2 * usual.learning_rate
    written, coded, ours, later = (
        row.numbers.learned for row in (films["as-written"], films["as-coded"], films["bounded"], longer)
    )
    yield Quote(
        f"Of {len(ours)} seeds, {sum(written)}, {sum(coded)} and {sum(ours)} learn; at twice the code's rate, in "
        f"{slow.recipe.steps} steps for its {usual.steps}, {sum(later)} of {len(later)} do",
        f"{_figure('heads-lock-on')} and {_figure('H1-figure-2')}",
    )


def _heads(evidence: Evidence) -> Iterator[Quote]:
    rows = [row for row in evidence.rows("H1-where-it-ends") if isinstance(row.config, Ends)]
    ended = [one for row in rows for one in row.numbers.in_strict_minimum]
    sizes = sorted({row.config.n for row in rows})
    yield Quote(
        f"at n = {sizes[0]} to {sizes[-1]} and temperature 1/n, {sum(ended)} of {len(ended)} descents from its own "
        "starts end in a strict local minimum",
        _figure("H1-where-it-ends"),
    )


def _concave(evidence: Evidence) -> Iterator[Quote]:
    faces = evidence.rows("P-faces")
    runs = sum(len(row.numbers.face) for row in faces)
    agreed = runs - sum(row.numbers.disagreements for row in faces)
    yield Quote(f"{agreed} of {runs} runs agreed", _figure("P-faces"))


def _chain(evidence: Evidence) -> Iterator[Quote]:
    rows = evidence.rows("W-figure-1")
    easy, hard, four = (
        cells_by([row for row in rows if row.config.label == label], lambda training: training.k)
        for label in (CHAIN, ANSWER, FOUR_HEADS)
    )
    last, alone = max(easy), max(k for k, cell in hard.items() if cell.reached == len(cell.rows))
    beyond = hard[alone + 1]
    yield Quote(
        f"{easy[last].reached} of {len(easy[last].rows)} seeds learn k = {last} at n = {rows[0].config.training.n} "
        f"(median {_spaced(easy[last].median)} examples). Without, k = {alone} takes {_spaced(hard[alone].median)}, "
        f"and k = {alone + 1} is learned by {beyond.reached} of {len(beyond.rows)} seeds within "
        f"{_spaced(beyond.budget)} ({four[alone + 1].reached} of {len(beyond.rows)} with four heads for eight)",
        _figure("W-figure-1"),
    )


def _fit(_: Evidence) -> Iterator[Quote]:
    stored = json.loads(FRONTIER.read_text())
    found = stored["frontier"]
    source = "`python benchmarks/fit_frontier.py`"
    (shares,) = {f"{one['found']} of {one['tables']}" for one in found}
    of = {(one["n"], one["k"], one["noise"]): one for one in found}
    four = of[1000, 4, 0.2]
    size = f"{four['k']} hidden columns among {four['n']}, {four['rows']} rows and a fifth of the labels wrong"
    yield Quote(f"{size} it named all four in {shares} tables", source)
    spent = f"median {four['processor']:.1f} s, longest {four['longest']:.0f} s"
    yield Quote(f"({spent}, `--budget {four['budget']}`)", source)
    wrong, tried = (sum(one[what] for one in stored["labelings"]) for what in ("found", "labelings"))
    yield Quote(f"it raised {wrong} false alarms in {tried}", source)


def _verdicts(evidence: Evidence) -> Iterator[Quote]:
    claims = evidence.all_claims()
    papers, others, ours = whose(claims)
    source = "`parityscope claims`, stored in docs/results/claims.json"
    yield Quote(
        f"{papers} statements of the papers, {others} of a machine-written page on H2 and {ours} of our own", source
    )
    names = {
        "H1": "H1's {} statements, ",
        "H2": "H2's {} statements (in our reading), ",
        "W": "W's {} statements, ",
        "K": "K's {} statements, ",
        "our own": "our own {} statements, ",
    }
    for tally in tallies(claims):
        if tally.name in names:
            yield Quote(names[tally.name].format(tally.statements) + _counted(tally.verdicts, tally.apart), source)


_SAID = {
    "holds": ("holds", "hold"),
    "in part": ("holds in part", "hold in part"),
    "fails": ("fails", "fail"),
    "misprint": ("is a misprint", "are misprints"),
    "proved": ("is proved", "are proved"),
    "open": ("is open", "are open"),
}


def _counted(verdicts: Mapping[str, int], beyond: int) -> str:
    """Return how many got which verdict, in words.

    >>> _counted({"holds": 3, "fails": 1}, 1)
    '3 hold, 1 fails and 1 cannot be refuted by any computation'
    """
    said = [f"{verdicts[name]} {words[verdicts[name] > 1]}" for name, words in _SAID.items() if verdicts.get(name)]
    return _listed(said + ([f"{beyond} cannot be refuted by any computation"] if beyond else []))


def _listed(values: Iterable[Any]) -> str:
    """Return values as in a sentence.

    >>> _listed([19, 48, 140])
    '19, 48 and 140'
    """
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def _spaced(count: float | None) -> str:
    """Return a count with its thousands apart.

    >>> _spaced(4000), _spaced(230_000)
    ('4000', '230 000')
    """
    assert count is not None, "half of the seeds and more did not get there"
    return f"{count:,.0f}".replace(",", " ") if count >= 10_000 else f"{count:.0f}"


def differing(readme: str, told: Iterable[Quote]) -> list[Quote]:
    """Return the quotes that the README does not hold word by word.

    >>> differing("It took 3  s.", [Quote("took 3 s", "a"), Quote("took 4 s", "b")])
    [Quote(text='took 4 s', source='b')]
    """
    flat = " ".join(readme.split())
    return [quote for quote in told if quote.text not in flat]


def unsupported(readme: str, told: Iterable[Quote]) -> list[str]:
    """Return the numbers of the README's prose, its commands and examples apart, that no quote holds.

    >>> unsupported("It took 3 s at n = 20, and then 5.", [Quote("took 3 s", "a")])
    ['5']
    """
    prose = readme
    for apart in (r"```.*?```", r"^    .*$", r"^\|.*$", r"\]\([^)]*\)", r"`[^`]*`", r"^\d\. "):
        prose = re.sub(apart, " ", prose, flags=re.S | re.M if apart.startswith("`") else re.M)
    flat = " ".join(prose.split())
    for quote in sorted(told, key=lambda quote: -len(quote.text)):
        flat = flat.replace(_plain(quote.text), " ")
    return re.findall(r"\d[\d.]*\d|\d", _NO_MEASUREMENT.sub(" ", flat))


def _plain(text: str) -> str:
    return " ".join(re.sub(r"`[^`]*`", " ", text).split())


_HEAD = (
    "# The README's numbers",
    "",
    "Every measured number of the README's prose, and the command whose stored rows it is counted from. Written from "
    "the rows (`make docs-results`); a test compares the README with it, and finds a number that is not listed.",
    "",
    "| the README says | from |",
    "|---|---|",
)


def page(told: Iterable[Quote]) -> str:
    """Return the list as a page."""
    lines = [f"| {quote.text.replace('[', '').replace(']', '')} | {quote.source} |" for quote in told]
    return "\n".join((*_HEAD, *lines, ""))


def main() -> None:
    """Write the page, and stop where the README says something else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce`")
    told = quotes(Evidence(parser.parse_args().folder))
    write_atomically(PAGE, page(told).encode())
    wrong = differing(README.read_text(), told)
    if wrong:
        sys.exit("the README says something else than its rows:\n" + "\n".join(f"  {one.text}" for one in wrong))


if __name__ == "__main__":
    main()

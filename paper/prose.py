"""Find numbers in the texts' sources that no named number supports.

Prose of the Typst sources may hold no digits: measured numbers are n("name"). What is not prose is taken off first:
comments, code, calls and their strings, labels, citations. In formulas small whole numbers are part of the mathematics;
every other number there must be a constant that is proved or defined, and listed here with what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
TEXTS = ("theory", "report")
SOURCES = tuple(path for text in TEXTS for path in (HERE / f"{text}.typ", *sorted((HERE / text).glob("*.typ"))))
MOST = 16  # whole numbers of a formula up to here are mathematics: exponents, factors, 8 of a bound

# What the prose may say with digits: the papers' names, and the numbers of their statements and of a proof’s steps.
STRUCTURAL = re.compile(
    r"\bH[12]\b|\(\d\)|\b(?:Theorem|Lemma|Proposition|Remark|Corollary|Assumption|Figure|Equation) \d+\b"
    r"|_Step \d\b|\bGSM8K\b"
    r"|\bLemmas \d+(?: (?:and|to) \d+)*\b"
)
# Constants of formulas, by what they are.
CONSTANTS = {
    "0.99": "what learned means: accuracy above it; and a code of the softmax trap",
    "95": "the confidence of every interval",
    "90": "the share of seeds for which examples are counted",
    "0.01": "the risk that counts as reached, LEARNED of papers/h1/descents.py",
    "0.1": "the loss that counts as near 0 for H2",
    "1.4": "−log cos(πz/2) ≤ 1.4z² on [0, ½]: −4 log cos(π/4) = 1.3863",
    "2.02": "upper bound on the margin of harmonics: 2 × 1.01",
    "0.02": "C at both ends of the witness against concavity above the first level: 0.0260 and 0.0217",
    "24": "4!, of fourth moments, and of a polynomial that bounds them",
    "720": "6!",
    "60": "720/12",
    "2.01": "2/(1 − ω − ρ)·(1 − ω), rounded up, of the proposition near the pair",
    "29": "2.01/60 ≤ 1/29",
    "1.04": "4·(2·12/11 + 12/29)/10 = 1.038",
    "0.2": "2(π/10)² = 0.197, and half of 0.4",
    "0.475": "½ − 0.2/8",
    "0.237": "0.475/2",
    "0.8": "1 − 0.2",
    "2.6": "1 + 0.8⁻² = 2.5625",
    "1.01": "(1 − e⁻⁴)^(−1/2) = 1.0093",
    "0.996": "C at which a run of one head stops, as learned",
    "100": "of damped Newton steps: 1/μ at μ = 0.01, and the gain δ/100",
    "25": "of damped Newton steps: tδ ≤ 1/25",
    "17": "of damped Newton steps: 15 + 2",
    "0.513": "r/2 over the degrees of χ², for Gaussian codes with a margin",
    "0.487": "1 − 0.513",
    "0.675": "1 − θ at θ = 0.325",
    "0.663": "c₁ of τ = c₁/n at which H1's own starts lie in a proved basin, n = 10",
    "1.037": "the same, n = 6",
    "30": "n of the softmax trap, P-softmax-trap",
    "0.29": "C of the softmax trap, certified",
    "2.55": "time of accuracy 1 by the mirror rule: 8/π = 2.5465",
    "32": "−log C < π²/32k is accuracy 1",
    "0.325": "θ = 2(1 + 4/π)/14 = 0.3247",
    "3.8": "time of accuracy 1 with few parameters: 8/(0.675π) = 3.77",
    "1176": "6 · 14², signs with coherence 1/14k",
    "0.4": "‖x‖₁ of the proposition on chains near the pair",
    "0.977": "C of its corollary",
    "0.65": "its rate: (1 + 0.8⁻²)/4 = 0.64",
    "2000": "times the examples that recover the pair, a clause of H2-samples",
}


class Unsupported(NamedTuple):
    """A number, where it stands, and the words around it."""

    file: str
    line: int
    number: str
    around: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.number} in “{self.around}”"


def unsupported(source: str, file: str = "") -> Iterator[Unsupported]:
    """Yield every number of a source that nothing supports."""
    prose, formulas = parted(source)
    known = STRUCTURAL.sub(lambda found: " " * len(found.group()), prose)
    for found in re.finditer(r"\d[\d.,]*\d|\d", known):
        yield _at(source, found.start(), found.group(), file)
    for found in re.finditer(r"\d+(?:\.\d+)?", formulas):
        number = found.group()
        if number not in CONSTANTS and ("." in number or int(number) > MOST):
            yield _at(source, found.start(), number, file)


def parted(source: str) -> tuple[str, str]:
    """Return prose and formulas, each with blanks in place of everything else, so that places stay what they are.

    >>> parted('In $2k$ of #n("runs.12") runs. // 7')
    ('In      of #n(         ) runs.     ', '    2k                             ')
    """
    kinds = ["p"] * len(source)
    code = re.compile(
        r"//[^\n]*"  # comments
        r'|"(?:\\.|[^"\\])*"'  # strings: names, keys, file names
        r"|#(?:import|show|include)[^\n]*"
        r"|columns:[^\n]*|align:[^\n]*"  # the shape of a table
        r"|<[\w-]+>|@[\w-]+"  # labels and what refers to them
        r"|`[^`]*`"
    )
    for found in re.finditer(r"\$[^$]*\$", source):
        kinds[found.start() + 1 : found.end() - 1] = "m" * (found.end() - found.start() - 2)
        kinds[found.start()] = kinds[found.end() - 1] = "x"
    for found in code.finditer(source):
        inside = kinds[found.start()] == "m"
        if not (inside and found.group()[0] in "<@/"):  # less-than and a slash of a formula are no code
            kinds[found.start() : found.end()] = "x" * (found.end() - found.start())

    def only(kind: str) -> str:
        return "".join(
            letter if own == kind or letter == "\n" else " " for letter, own in zip(source, kinds, strict=True)
        )

    return only("p"), only("m")


def _at(source: str, place: int, number: str, file: str) -> Unsupported:
    line = source.count("\n", 0, place) + 1
    around = source[max(0, place - 30) : place + 30].replace("\n", " ")
    return Unsupported(file, line, number, around)


def main() -> None:
    """Print what is unsupported."""
    for path in SOURCES:
        for found in unsupported(path.read_text(), path.name):
            print(found)


if __name__ == "__main__":
    main()

"""Numbers as the paper prints them: Typst markup, one spelling for shares, powers of ten and ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from parityscope.core.statistics import Share, wilson_share

NONE = "–"


def whole(value: float) -> str:
    """Return a whole number with thin spaces between thousands.

    >>> whole(16000), whole(940)
    ('16#h(0.16em)000', '940')
    """
    digits = f"{round(value):,}"
    return digits.replace(",", "#h(0.16em)") if abs(value) >= 10_000 else digits.replace(",", "")


def power(value: float, digits: int = 0) -> str:
    """Return a number as a power of ten with so many digits after the point, small whole numbers as they are.

    >>> power(3.2e-9), power(12.0), power(31234.0, 1)
    ('#box[$3 dot 10^(-9)$]', '12', '#box[$3.1 dot 10^(4)$]')
    """
    if value == 0:
        return "0"
    if 0.01 <= abs(value) < 1000:
        return decimal(value, 2)
    exponent = math.floor(math.log10(abs(value)))
    mantissa = f"{value / 10**exponent:.{digits}f}"
    if mantissa.lstrip("-").startswith("10"):
        exponent, mantissa = exponent + 1, f"{value / 10 ** (exponent + 1):.{digits}f}"
    factor = "" if mantissa == "1" else f"{mantissa} dot "
    return f"#box[${factor}10^({exponent})$]"


def decimal(value: float, significant: int) -> str:
    """Return a number with so many significant digits, never as a power of ten.

    >>> decimal(0.04512, 2), decimal(177.3, 2), decimal(3.0396, 3)
    ('0.045', '180', '3.04')
    """
    if value == 0:
        return "0"
    places = significant - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):.{max(0, places)}f}"


def counted(successes: int, trials: int) -> str:
    """Return a count of successes.

    >>> counted(31, 32)
    '31 of 32'
    """
    return f"{whole(successes)} of {whole(trials)}"


def share(successes: int, trials: int) -> str:
    """Return a count of successes with Wilson's 95 % interval.

    >>> share(31, 32)
    '31 of 32 (84–99%)'
    """
    return spelled(wilson_share(successes, trials))


def spelled(found: Share) -> str:
    """Return a share with its interval.

    >>> spelled(wilson_share(8, 8))
    '8 of 8 (68–100%)'
    """
    return f"{counted(found.successes, found.trials)} ({100 * found.low:.0f}–{100 * found.high:.0f}%)"


def total(flags: Iterable[Sequence[bool]]) -> tuple[int, int]:
    """Return successes and trials over several rows.

    >>> total([(True, False), (True,)])
    (2, 3)
    """
    every = [flag for one in flags for flag in one]
    return sum(every), len(every)


def ranged(values: Iterable[float]) -> str:
    """Return the range of whole numbers, one number where it has no width.

    >>> ranged([4, 10, 6]), ranged([3, 3])
    ('4 to 10', '3')
    """
    found = sorted(values)
    low, high = whole(found[0]), whole(found[-1])
    return low if low == high else f"{low} to {high}"


def listed(parts: Sequence[str]) -> str:
    """Return parts as a sentence lists them.

    >>> listed(["2", "3", "4"])
    '2, 3 and 4'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def typeset(text: str) -> str:
    """Return a stored sentence with its powers and indices set as such.

    >>> typeset("4e-99 of d^{11+ε}, 0e+00 at 2^n; e_{j,b}, γ_p(1)")
    '4·10#super[−99] of d#super[11+ε], 0 at 2#super[n];; e#sub[j,b], γ#sub[p];(1)'
    >>> typeset("n^(-1/2) of 1e-05, below 2.1e-05")
    'n#super[−1/2] of 10#super[−5], below 2.1·10#super[−5]'
    """

    def raised(found: re.Match[str]) -> str:
        return f"#super[{(found[1] or found[2] or found[3]).replace('-', '−')}]"

    apostrophes = re.sub(r"(?<=\w)'", "’", re.sub(r"\b0e\+00\b", "0", text))
    tens = re.sub(r"(?<=\d)e([+-]?)0*(\d+)\b", lambda one: f"·10^{one[1].replace('+', '')}{one[2]}", apostrophes)
    bare = plain(re.sub(r"(?<![\d.])1·(?=10\^)", "", tens))
    powers = re.sub(r"\^(?:\{(.*?)\}|\(([^()]*)\)|(⌈.*?⌉|[+-]?[\w.]+))", raised, bare)
    below = re.sub(r"\\_(?:\{(.*?)\}|([a-zα-ω∞])(?!\w))", lambda one: f"#sub[{one[1] or one[2]}]", powers)
    # A semicolon ends what Typst would otherwise read on: a bracket behind an index is no argument of it.
    return re.sub(r"(?<!\\)\](?=[;(])", "];", below)


def plain(text: str) -> str:
    """Return text that Typst shows as it is.

    >>> plain("C_1 #2")
    'C\\\\_1 \\\\#2'
    """
    return "".join(f"\\{character}" if character in "\\#$*_`<>@[]~" else character for character in text)

"""What a search says of itself in words: which sizes it covered, what it left out, and what explains the label."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from parityscope.fit.clock import time_text

_A_DAY = 86_400.0

if TYPE_CHECKING:
    from parityscope.fit.interactions.interactions import FoundInteraction


def sizes_text(sizes: Collection[int]) -> str:
    """Return sizes as ranges.

    >>> sizes_text({1, 2, 3, 10}), sizes_text({4})
    ('1 to 3 and 10', '4')
    """
    runs: list[list[int]] = []
    for size in sorted(sizes):
        if runs and size == runs[-1][-1] + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def counted(many: int | str, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "column"), counted("1 to 3", "column")
    ('1 column', '1 to 3 columns')
    """
    return f"{many} {what}{'' if many in (1, '1') else 's'}"


def skipped_sentence(unfinished: Mapping[int, tuple[float, float]], *, cut_short: bool = False) -> str:
    """Return what was not searched and what it would cost, from the correlation that was reached and the seconds.

    With `cut_short` it adds that the time was over before all candidates were asked what they add.

    >>> skipped_sentence({4: (0.5, 7300.0), 5: (1.0, 9e9), 6: (2.0, 1e15), 7: (2.0, 1e18)})
    'not searched: 4 columns weaker than 0.5 (2 hours), 5 columns with noise (285 years), 6 to 7 columns (longer)'
    """
    texts, longest, longer = [], 0.0, []
    for k, (met, seconds) in sorted(unfinished.items()):
        if longest > _A_DAY and seconds > longest:
            longer.append(k)
            continue
        which = "" if met > 1 else " with noise" if met == 1 else f" weaker than {met:g}"
        texts.append(f"{counted(k, 'column')}{which} ({time_text(seconds)})")
        longest = max(longest, seconds)
    if longer:
        some = " with noise" if all(unfinished[k][0] == 1 for k in longer) else ""
        texts.append(f"{sizes_text(longer)} columns{some} (longer)")
    if cut_short:
        texts.append("what else adds to it (the time was over)")
    return f"not searched: {', '.join(texts)}" if texts else ""


def explanation(
    found: tuple[FoundInteraction, ...], whole_table: bool, name: Callable[[int], str], *, skipped: bool = False
) -> str:
    """Return what explains the label: one parity, one table, main effects, or several interactions together.

    With `skipped` not everything was searched, so that nothing is said of all that there may be.

    >>> from parityscope.fit.interactions.interactions import FoundInteraction
    >>> one = FoundInteraction((1, 6), "parity", ("a = 1", "b = 1"), 0.8, -40.0, 0.5, 0.9, {}, "exhaustive", None, [])
    >>> explanation((one,), False, "x{}".format)
    'the parity of x1, x6 explains the label with held-out accuracy 0.900; nothing else adds to it'
    """
    searched = " that was searched" if skipped else ""
    accuracy = f"with held-out accuracy {found[-1].accuracy:.3f}"
    first = found[0]
    columns = sorted({column for one in found for column in one.support})
    names = ", ".join(map(name, columns if len(found) > 1 else first.support))
    if len(found) == 1 and first.k > 2 and first.kind != "parity":
        return f"no single parity explains the label: the table of all values of {names} does, {accuracy}"
    if len(found) == 1:
        return f"the {first.kind} of {names} explains the label {accuracy}; nothing else{searched} adds to it"
    if all(one.kind == "main effect" for one in found) and not whole_table:
        adds = f"no interaction{searched} adds to them"
        return f"main effects of {names}, added up, explain the label {accuracy}; {adds}"
    if whole_table:
        return (
            f"no single parity explains the label: the table of all values of {names} does, better than "
            f"{len(found)} parities added up"
        )
    share = f"{len(found)} interactions share the label, of {names}: added up they explain it {accuracy}"
    return share if any(one.kind == "parity" for one in found) else f"no single parity explains the label: {share}"

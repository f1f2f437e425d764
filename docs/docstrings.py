"""For the API reference: makes markdown of docstrings, which are plain text with doctests; public names come first."""

from __future__ import annotations

import re
from typing import Any

import griffe

_CODE = re.compile(r"(`[^`\n]*`)")


class PlainDocstrings(griffe.Extension):
    """Fences doctests and shields characters that markdown would take for its own."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        """Put what `import parityscope` gives before everything else of a module."""
        if mod is not mod.package:
            public = [str(name) for name in mod.package.exports or ()]
            here = [name for name in public if name in mod.members and not mod.members[name].is_alias]
            mod.exports = here or None  # none: all in the order of the source


def as_markdown(text: str) -> str:
    r"""Return a plain docstring as markdown.

    >>> print(as_markdown("Shape (*runs, n).\n\nParameters\n----------\nn : int\n    Bits."))
    Shape (\*runs, n).
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `n` : int
        Bits.
    """
    lines: list[str] = []
    fenced = listed = False
    for line in text.splitlines():
        if line and set(line) == {"-"} and lines and lines[-1]:  # a section: its title, and entries until an example
            lines[-1:] = [f"**{lines[-1]}**", ""]
            listed = True
            continue
        if line.startswith(">>>") and not fenced:
            lines += ["", "```pycon"] if lines and lines[-1] else ["```pycon"]
            fenced, listed = True, False
        elif fenced and not line:
            lines.append("```")
            fenced = False
        if listed and line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            lines.append(f"- `{name}` : {_shielded(kind)}" if kind else f"- {_shielded(line)}")
        else:
            lines.append(line if fenced or line.startswith("    ") else _shielded(line))
    return "\n".join([*lines, *(["```"] if fenced else [])])


def _shielded(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(part if part.startswith("`") else re.sub(r"([*<\[\]])", r"\\\1", part) for part in parts)

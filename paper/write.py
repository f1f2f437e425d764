"""Write both texts: numbers and pictures from stored rows, then PDFs. `make paper` does all of it.

    python paper/write.py reference-output                  # the folder of `make reference`, or of an unpacked one
    python paper/write.py FOLDER --draft --pages            # what has no rows yet shows as a gap; pages as PNG too

Writes paper/build/: numbers.json, figures/*.svg, theory.pdf and report.pdf.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from evidence import Evidence, NoEvidence
from named_numbers import SECTIONS
from pictures import PICTURES, in_print

from parityscope.core.drawing import svg
from parityscope.core.files import write_atomically
from parityscope.papers.figure import SCALES, Scale

HERE = Path(__file__).parent
TEXTS = ("theory", "report")


def main() -> None:
    """Read the arguments and write the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce`")
    parser.add_argument("--scale", choices=SCALES, default="reference")
    parser.add_argument("--out", type=Path, default=HERE / "build")
    parser.add_argument("--draft", action="store_true", help="show a gap for every number that has no rows yet")
    parser.add_argument("--pages", action="store_true", help="write every page as PNG too")
    asked = parser.parse_args()
    try:
        missing = write_sources(asked.folder, asked.out, scale=asked.scale, draft=asked.draft)
    except NoEvidence as reason:
        sys.exit(str(reason))
    for reason in missing:
        print(f"draft: {reason}")
    for text in TEXTS:
        print(compiled(text, asked.out, pages=asked.pages))


def write_sources(folder: Path, out: Path, *, scale: Scale = "reference", draft: bool = False) -> list[str]:
    """Write numbers and pictures; return what a draft does without. Otherwise what is missing is an error."""
    # Public files are tables too where there is a data folder; the paper is the same everywhere without them.
    os.environ.pop("PARITYSCOPE_DATA", None)
    evidence = Evidence(folder, scale)
    found: dict[str, Any] = {"draft": draft, "numbers": {}, "tables": {}}
    missing: list[str] = []
    for section in SECTIONS:
        try:
            named = section(evidence)
        except NoEvidence as reason:
            missing.append(str(reason))
            continue
        found["numbers"] |= named.numbers
        found["tables"] |= named.tables
    pictures = {}
    for name, draw in PICTURES.items():
        try:
            pictures[name] = svg(in_print(draw, evidence))
        except NoEvidence as reason:
            missing.append(str(reason))
    if missing and not draft:
        raise NoEvidence("\n".join(dict.fromkeys(missing)))
    found["pictures"] = sorted(pictures)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        write_atomically(out / "figures" / f"{name}.svg", picture)
    write_atomically(out / "numbers.json", json.dumps(found, indent=1, ensure_ascii=False).encode())
    return list(dict.fromkeys(missing))


def compiled(text: str, out: Path, *, pages: bool = False) -> Path:
    """Compile a text with what `write_sources` wrote, and return the PDF."""
    try:
        import typst
    except ImportError:
        sys.exit("the texts need typst: pip install 'parityscope[paper]'")
    inputs = {"build": str(out.resolve().relative_to(HERE.resolve()))} if out.resolve().is_relative_to(HERE) else {}
    if not inputs:
        sys.exit(f"{out} must lie below {HERE}: Typst reads nothing outside of its root")
    compiler = typst.Compiler(str(HERE / f"{text}.typ"), root=str(HERE), sys_inputs=inputs)
    pdf = out / f"{text}.pdf"
    compiler.compile(output=str(pdf))
    if pages:
        compiler.compile(output=str(out / f"{text}-{{0p}}.png"), format="png", ppi=110)
    return pdf


if __name__ == "__main__":
    main()

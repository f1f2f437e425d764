"""Render the notebooks as plain HTML files beside them: text, code and pictures, nothing fetched from elsewhere.

marimo's own export needs a server for its scripts; without scripts sliders are shown where they stand.
Run by `make docs-results`; a test compares the fingerprint in each file with its notebook.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parent / "notebooks"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="notebook" content="{fingerprint}"><title>{title}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
img {{ max-width: 100%; background: white; border-radius: 4px; }}
table {{ display: block; overflow-x: auto; }}
pre {{ overflow-x: auto; padding: .8rem; border: 1px solid #8884; border-radius: 4px; font-size: 13px; }}
.paragraph {{ display: block; margin: .8rem 0; }}
.said {{ border-left: 4px solid #2a8; padding: .2rem 1rem; margin: 1rem 0; }}
.choice {{ display: inline-block; margin-right: 1.5rem; }}
details {{ margin: .5rem 0 1.5rem; color: GrayText; }} summary {{ cursor: pointer; font-size: 13px; }}
</style></head><body>
<p>Rendered from <code>docs/notebooks/{name}</code>.
With sliders that move: <code>marimo edit docs/notebooks/{name}</code>.
<a href="../index.html">The documentation</a>.</p>
{cells}
<h2>What it prints</h2>
<pre>{printed}</pre>
</body></html>
"""


def fingerprint(notebook: Path) -> str:
    """Return what a rendered page says of its notebook."""
    return hashlib.sha256(notebook.read_bytes()).hexdigest()


def rendered(notebook: Path) -> str:
    """Run a notebook from top to bottom and return it as a page."""
    app = runpy.run_path(str(notebook), run_name="notebook")["app"]
    with redirect_stdout(io.StringIO()) as printed:
        outputs, names = app.run()
    code = "<details><summary>code</summary><pre>{}</pre></details>"
    cells = [
        f"{_shown(output, cell, names)}\n{code.format(html.escape(cell._cell.code))}"
        for cell, output in zip(app._cell_manager.cells(), outputs, strict=True)
    ]
    return PAGE.format(
        name=notebook.name,
        title=html.escape(app._config.app_title or notebook.stem),
        fingerprint=fingerprint(notebook),
        cells="\n".join(cells),
        printed=html.escape(printed.getvalue()),
    )


def _shown(output: Any, cell: Any, names: Any) -> str:
    """Return a cell's output as HTML without scripts."""
    from marimo import as_html
    from marimo._plugins.ui._core.ui_element import UIElement
    from matplotlib.figure import Figure

    choices = [(name, names[name]) for name in sorted(cell.defs) if isinstance(names.get(name), UIElement)]
    if choices:
        return "".join(
            f'<span class="choice">{_label(choice) or name}: <b>{choice.value}</b></span>' for name, choice in choices
        )
    if output is None:
        return ""
    if isinstance(output, Figure):
        picture = io.BytesIO()
        output.savefig(picture, format="png", dpi=110)
        return f'<img alt="{cell.name}" src="data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}">'
    text = as_html(output).text
    if callout := re.fullmatch(r"<marimo-callout-output data-html='(.*?)'.*", text, flags=re.S):
        return f'<div class="said">{json.loads(html.unescape(callout[1]))}</div>'
    if "<marimo-" in text:
        raise ValueError(f"the output of {cell.name} needs marimo's scripts: {text[:80]}")
    return text


def _label(choice: Any) -> str:
    return html.unescape(re.sub("<[^>]*>", "", choice._args.label or ""))


def main() -> None:
    """Render all, or those that are named."""
    import matplotlib

    matplotlib.use("agg")
    for notebook in map(Path, sys.argv[1:] or sorted(NOTEBOOKS.glob("*.py"))):
        notebook.with_suffix(".html").write_text(rendered(notebook))
        print(notebook.with_suffix(".html"))


if __name__ == "__main__":
    main()

"""Take the pictures of the explorer that its page shows, in a real browser: needs chromium and the extra `test`.

python docs/explorer_pictures.py             # docs/images/explorer-*.png
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect, sync_playwright

PAGES = Path(__file__).parent
sys.path.insert(0, str(PAGES.parent / "tests"))

from explorer_server import running_explorer  # noqa: E402

CHROMIUM = os.environ.get("PARITYSCOPE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
WAIT = 120_000


def _says(page: Page, place: str, text: str) -> None:
    expect(page.locator(place)).to_contain_text(re.compile(text), timeout=WAIT)


def _learn(page: Page) -> None:
    _says(page, "#learn-status", "^Step 0 ")
    page.get_by_role("button", name="Train", exact=True).click()
    _says(page, "#learn-status", r"^Step \d{2,} ")
    _says(page, "#learn-status", "learned|stopped|recovered")
    page.wait_for_timeout(6000)
    pause = page.get_by_role("button", name="Pause", exact=True)
    if pause.is_visible():
        pause.click()


def _data(page: Page) -> None:
    page.locator("#data-file").set_input_files(_plants())
    _says(page, "#data-name", "1,200 rows")
    page.get_by_label("Missing values").select_option("median")
    page.get_by_role("button", name="Search", exact=True).click()
    _says(page, "#data-status", "interactions")
    _says(page, "#data-panels", "with shuffled classes met")


def _plants() -> Path:
    """Return a table in which two pairs share the classes."""
    random = np.random.default_rng(0)
    lines = ["gene a;gene b;pressure;plant;fault"]
    for row in range(1200):
        genes, pressure = random.integers(0, 3, size=2), random.normal(50, 8)
        plant = str(random.choice(["Ulm", "Bonn", "Kiel", "Jena", "Hof", "Suhl"]))
        pair = (genes[0] > 0) ^ (genes[1] == 1) if random.random() < 0.5 else (pressure > 53) ^ (plant == "Kiel")
        measured = "" if row % 50 == 7 else f"{pressure:.1f}"
        lines.append(f"{genes[0]};{genes[1]};{measured};{plant};{'yes' if pair else 'no'}")
    path = Path(tempfile.mkdtemp()) / "plants.csv"
    path.write_text("\n".join(lines))
    return path


def _until(place: str, text: str) -> Callable[[Page], None]:
    return lambda page: _says(page, place, text)


def _results(page: Page) -> None:
    expect(page.locator("#results-body .figure")).to_be_visible(timeout=WAIT)
    _says(page, "#results-status", "reference run")
    page.wait_for_timeout(2000)


# Picture: where it is, and what is done before it is taken.
PICTURES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "learn": ("#learn?n=20&support=7,10,17&k=3&recipe=repaired&pace=5", _learn),
    "what-can-be-learned": ("#polytope?n=12&support=2,5&harmonics=1", _until("#polytope-status", "is no face")),
    "why-it-fails": ("#why?n=12&k=2&recipe=as-written&learning_rate=0.003", _until("#why-status", "depend")),
    "one-step": ("#onestep?n=1000&k=2", _until("#onestep-status", "learned")),
    "chain-of-thought": ("#chain?n=12&k=4", _until("#chain-status", "held-out inputs right")),
    "a-tree": ("#tree?training=CoT+%2B+self-consistency", _until("#tree-status", "right on all")),
    "your-data": ("#data", _data),
    "results": ("#results?show=H1-success", _results),
}


def main() -> None:
    """Start the explorer on the shipped rows and photograph every view, whole."""
    with running_explorer() as server, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name, (address, act) in PICTURES.items():
            page = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light").new_page()
            page.set_default_timeout(WAIT)
            page.goto(f"{server.url}/{address}")
            act(page)
            page.wait_for_timeout(1500)  # plots settle
            page.screenshot(path=PAGES / "images" / f"explorer-{name}.png", clip=_clip(page), full_page=True)
            page.context.close()
            print(f"docs/images/explorer-{name}.png")


def _clip(page: Page) -> dict[str, float]:
    """Return the top of the page: all of it, but no more than a reader wants to scroll."""
    height = page.evaluate("document.documentElement.scrollHeight")
    return {"x": 0, "y": 0, "width": 1280, "height": min(height, 1300)}


if __name__ == "__main__":
    main()

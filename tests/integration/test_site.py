"""The documentation builds without a warning, and its pages load nothing from elsewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """Collects what a browser would fetch by itself, and the places a link can point to."""

    def __init__(self, text):
        super().__init__()
        self.fetched, self.links, self.places = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.places |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if attributes.get("src"):
            self.fetched.append(attributes["src"])
        if tag == "link" and attributes.get("rel") != "canonical":
            self.fetched.append(attributes.get("href") or "")
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return {path.relative_to(folder): Page(path.read_text()) for path in folder.rglob("*.html")}


def test_pages_fetch_nothing_from_elsewhere(site):
    fetched = {address for page in site.values() for address in page.fetched}
    assert any(address.endswith(".css") for address in fetched)
    assert [address for address in fetched if re.match(r"(https?:)?//", address)] == []


def test_every_inner_link_has_its_place(site):
    checked = 0
    for path, page in site.items():
        for link in page.links:
            target, _, place = link.partition("#")
            if re.match(r"\w+:|/", target) or path.name == "404.html":
                continue
            found = Path(os.path.normpath(path.parent / target)) if target else path
            assert found in site, f"{path} links to {link}"
            assert not place or place in site[found].places, f"{path} links to {link}"
            checked += 1
    assert checked > 1000

"""What a project is expected to have is there, and says the same thing in every place."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import parityscope

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
TEMPLATES = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]


def test_the_citation_is_of_this_version_and_these_papers():
    assert CITATION["version"] == parityscope.__version__
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["cff-version"] == "1.2.0"
    assert all(CITATION[field] for field in ("title", "message", "authors", "abstract", "keywords"))
    papers = (ROOT / "docs" / "reference" / "papers.md").read_text()
    for reference in CITATION["references"]:
        assert reference["url"] in papers
        assert reference["year"]
        assert all({"family-names", "given-names"} <= set(author) for author in reference["authors"])
    assert {reference["url"] for reference in CITATION["references"]} <= set(PROJECT["urls"].values())


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_asks_for_what_is_needed(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    ids = [part["id"] for part in form["body"]]
    assert len(ids) == len(set(ids)) > 0
    assert any(part["validations"]["required"] for part in form["body"])
    for part in form["body"]:
        assert part["type"] in ("input", "textarea", "dropdown")
        assert part["attributes"]["label"]


def test_a_wrong_verdict_has_a_template_with_the_verdicts_that_there_are():
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "statement-judged-wrong.yml").read_text())
    options = {part["id"]: part["attributes"].get("options") for part in form["body"]}["verdict"]
    from parityscope.papers.claim import Verdict

    assert set(Verdict.__args__) <= set(options)


def test_commands_that_pages_for_contributors_name_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for page in ("CONTRIBUTING.md", "RELEASING.md"):
        for target in re.findall(r"\bmake ([a-z-]+)", (ROOT / page).read_text()):
            assert re.search(rf"^{target}:", makefile, flags=re.M), f"{page} names make {target}"


def test_every_python_that_is_promised_is_tried():
    classifiers = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    (tried,) = re.findall(r"^PYTHONS \?= (.*)$", (ROOT / "Makefile").read_text(), flags=re.M)
    assert tried.split() == classifiers

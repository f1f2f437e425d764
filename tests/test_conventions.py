"""What a project is expected to have is there, and says the same thing in every place."""

import json
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
    described = json.loads((ROOT / "codemeta.json").read_text())
    assert (described["version"], described["dateModified"]) == (CITATION["version"], str(CITATION["date-released"]))
    assert {reference["url"] for reference in CITATION["references"]} == set(described["referencePublication"])
    assert described["softwareRequirements"] == [one.partition(">")[0] for one in PROJECT["dependencies"]]
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
    assert tried.split()[: len(classifiers)] == classifiers
    tested = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert [version for version in tried.split() if f'"{version}"' not in tested] == []


def pins(name):
    """Every package that a file of pins names, with its versions."""
    found = {}
    for package, version in re.findall(r"^([\w.-]+)==([\w.+]+)", (ROOT / name).read_text(), flags=re.M):
        found.setdefault(package.replace("_", "-"), set()).add(version)
    return found


@pytest.mark.parametrize("name", ["torch.lock", "requirements.lock"])
def test_every_locked_package_has_hashes_and_no_place_of_its_own(name):
    text = "".join(
        line for line in (ROOT / name).read_text().splitlines(keepends=True) if line.lstrip()[:1] not in ("", "#")
    )
    entries = re.split(r"^(?=\S)", text, flags=re.M)[1:]
    assert len(entries) >= 2
    for entry in entries:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n", entry), (
            f"neither an index nor a path belongs into a lock, and no entry goes without hashes: {entry}"
        )


def test_the_lock_is_of_these_versions_and_of_all_that_is_required():
    pinned, locked = pins("constraints.txt"), pins("torch.lock") | pins("requirements.lock")
    assert pins("torch.lock") == {"torch": pinned["torch"]}
    assert {name: locked[name] for name in locked.keys() & pinned} == {
        name: pinned[name] for name in locked.keys() & pinned
    }
    assert not [name for name in locked if re.match("nvidia|cuda|triton|parityscope", name)]
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    required = {*PROJECT["dependencies"], *extras["package"]}
    for extra in re.search(r"\[(.*)\]", everything)[1].split(","):
        required |= {line for line in extras[extra] if not line.startswith("parityscope")}
    names = {re.match(r"[\w.-]+", line)[0].replace("_", "-") for line in required}
    assert len(names) > 20
    assert names - locked.keys() == set()


def test_the_short_paper_cites_what_its_bibliography_has_and_states_only_numbers_of_the_readme(monkeypatch):
    paper, entries = ((ROOT / "paper" / name).read_text() for name in ("paper.md", "paper.bib"))
    head, text = paper.removeprefix("---\n").split("---\n", 1)
    assert yaml.safe_load(head)["title"] == CITATION["title"]
    assert set(re.findall(r"@(\w+)", text)) == set(re.findall(r"^@\w+\{(\w+),", entries, flags=re.M))
    numbers = re.findall(r"(?<![\w(^])\d+(?: of \d+)?", re.sub(r"\$[^$]*\$|@\w+", "", text))
    readme = (ROOT / "README.md").read_text()
    assert len(numbers) >= 3
    assert [number for number in numbers if number not in readme] == []

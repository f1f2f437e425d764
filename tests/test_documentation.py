"""Every code block of every page runs and prints what the page shows; and the runner would notice if it did not."""

import re
import runpy
import tomllib

import pytest
import typer.main

import parityscope
from documentation import PAGES, ROOT, PageError, blocks_of, matches, run_page
from parityscope.apps.cli import app
from parityscope.papers.registry import CLAIM_IDS, source_of

ALL = {str(path.relative_to(PAGES)): path.read_text() for path in sorted(PAGES.rglob("*.md"))}
SOURCE = ROOT / "src" / "parityscope"
WITH_SLOW_BLOCKS = [name for name, text in ALL.items() if "<!-- slow: " in text]


@pytest.mark.slow
@pytest.mark.parametrize("page", ALL)
def test_page(page, tmp_path):
    if left_out := run_page(ALL[page], tmp_path):
        pytest.skip(f"all but this was run: {'; '.join(left_out)}")


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_SLOW_BLOCKS)
def test_page_with_its_slow_blocks(page, tmp_path):
    if left_out := run_page(ALL[page], tmp_path, slow=True):
        pytest.skip(f"all but this was run: {'; '.join(left_out)}")


def test_the_command_line_page_has_every_command_with_an_example():
    text = ALL["reference/command-line.md"]
    sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S))
    assert set(sections) == set(typer.main.get_command(app).commands)
    for command, section in sections.items():
        assert any(f"parityscope {command} " in block.code + " " for block in blocks_of(section)), command


def test_the_install_page_has_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = re.findall(r"^\| `([\w-]+)` \|", ALL["install.md"], flags=re.M)
    assert set(listed) == set(project["optional-dependencies"])


def test_every_public_name_has_its_place_in_the_reference():
    listed = set(re.findall(r"`ps\.(\w+)`", ALL["reference/api/index.md"]))
    assert listed == set(parityscope.__all__)


FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.py)`")


@pytest.mark.parametrize("page", [name for name, text in ALL.items() if FILE.search(text)])
def test_every_file_that_a_page_names_is_there(page):
    written = {block.title for block in blocks_of(ALL[page])}
    places = (ROOT, SOURCE, PAGES)
    named = set(FILE.findall(ALL[page])) - written
    assert [name for name in named if not any((place / name).is_file() for place in places)] == []


def test_every_file_with_claims_is_named_where_they_are_explained():
    named = set(FILE.findall(ALL["how-to/check-a-claim.md"]))
    assert named >= {source_of(claim_id) for claim_id in CLAIM_IDS}


def test_formulas_are_typeset_from_files_of_the_site():
    katex = PAGES / "katex"
    named = re.findall(r"url\(([^)]+)\)", (katex / "katex.min.css").read_text())
    assert {katex / font for font in named} == set((katex / "fonts").iterdir())
    assert "http" not in "".join(named) + (katex / "render.js").read_text()


def test_docstrings_become_markdown():
    as_markdown = runpy.run_path(str(PAGES / "docstrings.py"))["as_markdown"]
    plain = "Shape (*runs, n) of `a*b`.\n\n    c * d\n\n>>> 1 + 1\n2\n\nMore."
    shown = "Shape (\\*runs, n) of `a*b`.\n\n    c * d\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert as_markdown(plain) == shown
    assert as_markdown(">>> 2\n2") == "```pycon\n>>> 2\n2\n```"


def page(*blocks):
    return "\n\n".join(f"```{language}\n{code}\n```" for language, code in blocks)


def test_blocks_share_a_namespace_and_a_folder(tmp_path):
    text = page(
        ('csv title="data/table.csv"', "a,b\n1,2"),
        ("python", "from pathlib import Path\nrows = Path('data/table.csv').read_text().splitlines()"),
        ("python", "print(len(rows), 'rows')\nprint('noise')\nprint('end')"),
        ("text", "2 …ows\n…\nend"),
        ("bash", "python -c 'print(6 * 7)' > answer\ncat answer data/table.csv"),
        ("text", "42\na,b\n1,2"),
    )
    assert run_page(text, tmp_path) == []


SERVER = (
    'python title="serve.py"',
    "import sys\nfrom http.server import HTTPServer, SimpleHTTPRequestHandler\ntry:\n"
    "    HTTPServer(('127.0.0.1', int(sys.argv[2])), SimpleHTTPRequestHandler).serve_forever()\n"
    "except KeyboardInterrupt:\n    sys.exit(print('stopped') or int(sys.argv[3]))",
)
UNTIL = page(SERVER) + "\n\n<!-- until: http://127.0.0.1:8000/ -->\n"
MACHINES = page(SERVER) + "\n\n<!-- machines: 10.0.0.5:8786 -->\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (page(("python", "print(1)"), ("text", "2")), "but this was printed"),
        (page(("bash", "echo one; echo two"), ("text", "one")), "but this was printed"),
        (page(("bash", "false\necho went on")), "exit code 1"),
        (page(("bash", "parityscope learn --n 8 --k 9")), "exit code 2"),
        (page(("text", "an output of nothing")), "directly after no code"),
        (page(("python", "print(1)")) + "\n\nwhich prints\n\n" + page(("text", "1")), "directly after no code"),
        (page(("py", "print(1)")), "neither run nor written"),
        (page(("", "print(1)")), "neither run nor written"),
        ("Run\n\n    parityscope learn\n", "outside of a fenced block"),
        ("<!-- skip: it is hard -->\n" + page(("python", "1")), "unknown comment"),
        ("<!-- needs: luck -->\n" + page(("python", "1")), "unknown comment 'luck'"),
        (UNTIL + page(("bash", "parityscope explore --prot 8000")), "exit code 2"),
        (UNTIL + page(("bash", "python serve.py --port 8000 3")), "exit code 3"),
        (MACHINES + page(("bash", "echo no server\necho end")), "ended before"),
        (MACHINES + page(("bash", "python serve.py --port 8786 0\nfalse")), "exit code 1"),
        ("<!-- run by: tests/test_nothing.py -->\n" + page(("python", "1")), "there is no tests/test_nothing.py"),
    ],
)
def test_a_wrong_page_fails(text, complaint, tmp_path):
    with pytest.raises(PageError, match=complaint):
        run_page(text, tmp_path)


def test_an_error_in_python_names_its_line(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("A page.\n\n" + page(("python", "\n1 / 0")), tmp_path)
    assert caught.traceback[-1].lineno == 4


def test_slow_blocks_run_only_when_asked(tmp_path):
    text = "<!-- slow: 3 minutes -->\n" + page(("bash", "false"))
    (tmp_path / "fast").mkdir()
    (tmp_path / "slow").mkdir()
    assert run_page(text, tmp_path / "fast") == []
    with pytest.raises(PageError):
        run_page(text, tmp_path / "slow", slow=True)


def test_blocks_that_need_data_say_so(tmp_path, monkeypatch):
    monkeypatch.delenv("PARITYSCOPE_DATA", raising=False)
    assert run_page("<!-- needs: data -->\n" + page(("bash", "false")), tmp_path) == ["line 2 needs PARITYSCOPE_DATA"]


def test_a_copy_of_the_source_is_what_commands_then_use(tmp_path):
    edit = "sed -i 's/^__version__ = .*/__version__ = \"9.9\"/' src/parityscope/__init__.py"
    text = page(("bash", edit), ("bash", "parityscope --version"), ("text", "9.9"))
    assert run_page("<!-- needs: source -->\n" + text, tmp_path) == []


def test_indented_blocks_inside_lists_are_found():
    (block,) = blocks_of(
        "1. First:\n\n    ```python\n    if 1:\n        print(2)\n    ```\n\n    ```text\n    2\n    ```\n"
    )
    assert (block.code, block.expected) == ("if 1:\n    print(2)\n", "2\n")


def test_dots_match_within_a_line_only():
    assert matches("a … d", "a b c d\n")
    assert not matches("a … d", "a b\nc d")
    assert matches("a\n…\nd", "a\nb\nc\nd\n")
    assert matches("a\n…", "a\n")
    assert not matches("a", "a\nb")
    assert not matches("a", " a")
    assert matches("\n  a\nb\n", "   \n  a  \nb\n \n")


def test_a_server_runs_until_its_address_answers(tmp_path):
    text = page(("bash", "python serve.py --port 8000 0\necho ended"), ("text", "stopped\nended"))
    assert run_page(UNTIL + text, tmp_path) == []


def test_machines_are_processes_that_reach_each_other(tmp_path):
    ask = "python -c \"import urllib.request; print(urllib.request.urlopen('http://10.0.0.5:8786/').status)\""
    text = page(("bash", f"python serve.py --port 8786 0 # on one machine\nsleep 1000\n{ask}"), ("text", "200"))
    assert run_page(MACHINES + text, tmp_path) == []


def test_a_command_is_a_process_of_its_caller(tmp_path):
    text = page(
        ("bash", "mkdir there && cd there\nWHO=me parityscope learn --n 8 --k 2 --out run | tail -n 1 | wc -l\nls run"),
        ("text", "1\n…\nrun.json\n…"),
        ("bash", "test -e there/run/run.json\nparityscope learn --n 8 --k 9 2> errors || echo $?\nwc -l < errors"),
        ("text", "2\n1"),
    )
    assert run_page(text, tmp_path) == []

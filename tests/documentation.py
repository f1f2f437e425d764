"""Run the code blocks of a documentation page, top to bottom, as a reader would.

A page is markdown. What its fenced blocks mean:

- `python` blocks share one namespace. A `text` block directly after one is what it must print.
- `bash` blocks run with `bash -e`; a `text` block directly after one is what it must print to standard output.
- A block with a title (```` ```csv title="table.csv" ````) is written to that file and not run.
- In expected output `…` stands for anything within a line, and a line of only `…` for any lines.

A comment directly above a block says what is special about it:

- `<!-- slow: 3 minutes -->`  runs only in the page's slow test;
- `<!-- needs: data -->`      runs only where PARITYSCOPE_DATA names a folder;
- `<!-- needs: sbatch -->`    gets a stand-in for Slurm;
- `<!-- needs: source -->`    works in a copy of the source tree, which commands then use;
- `<!-- not run: REASON -->`  a bash block that is not run; every command in it is checked to exist with its options;
- `<!-- run by: FILE -->`     run by that test instead, which names the page.

All blocks of a page work in one temporary folder. Indented blocks are formulas: a command in one is an error.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import types
from dataclasses import dataclass
from pathlib import Path

import typer
import typer.main

from parityscope.cli import app
from slurm_stand_in import end_jobs, install_slurm

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs"

FENCE = re.compile(
    r"(?:^[ ]*<!--\ (?P<kind>[a-z ]+):\ (?P<detail>[^\n]*?)\ -->\n)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.M | re.S | re.X,
)
USAGE_ERROR = typer.BadParameter.__base__  # typer may carry a click of its own
KINDS = ("slow", "needs", "not run", "run by")
COMMAND = re.compile(r"^(?: {4}|\t)\$? *(?:parityscope |python |pip |make |import |from \w+ import |\.venv)", re.M)


@dataclass
class Block:
    """One fenced block: its code, where it stands, what it must print, and what the comment above it says."""

    language: str
    code: str
    line: int
    title: str | None = None
    kind: str | None = None
    detail: str = ""
    expected: str | None = None


class PageError(AssertionError):
    """What a page says is not what happens."""


def blocks_of(text):
    """Return the page's blocks in order; an output that follows no code, or code that is no block, is an error."""
    blocks, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.M)
        title = re.search(r'title="([^"]+)"', match["options"])
        block = Block(match["language"], code, line, title and title[1], match["kind"], match["detail"] or "")
        if block.kind not in (None, *KINDS):
            raise PageError(f"line {line}: unknown comment {block.kind!r}")
        if block.language == "text" and not block.title:
            if not blocks or text[end : match.start()].strip() or blocks[-1].title or blocks[-1].expected is not None:
                raise PageError(f"line {line}: output that stands directly after no code")
            blocks[-1].expected = code
        elif block.title or block.language in ("python", "bash"):
            blocks.append(block)
        else:
            raise PageError(f"line {line}: a {block.language or 'nameless'} block is neither run nor written to a file")
        end = match.end()
    outside = FENCE.sub("", text)
    if command := COMMAND.search(outside):
        raise PageError(f"code outside of a fenced block: {outside[command.start() :].splitlines()[0]!r}")
    return blocks


def matches(expected, printed):
    """Whether what was printed is what the page shows, but for trailing space and blank lines around it."""
    pattern = ""
    for line in _lines(expected):
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += r"[^\n]*".join(re.escape(part) for part in line.split("…")) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed))) is not None


def _lines(text):
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()


class Runner:
    """Runs blocks in one folder, with one Python namespace."""

    def __init__(self, folder):
        self.folder, self.programs = folder / "page", folder / "bin"
        self.folder.mkdir()
        install_slurm(self.programs)
        self._program("parityscope", "from parityscope.cli import main\n\nif __name__ == '__main__':\n    main()\n")
        self._program("python", f"import os, sys\nos.execv({sys.executable!r}, ['python', *sys.argv[1:]])\n")
        self.env = {
            **os.environ,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "120",
            "MPLBACKEND": "agg",
            "HOME": str(folder),  # a page changes nothing of the user's
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        }
        self.module = types.ModuleType("documentation_page")

    def _program(self, name, code):
        (self.programs / name).write_text(f"#!{sys.executable}\n{code}")
        (self.programs / name).chmod(0o755)

    def run(self, block):
        """Run one block or write its file; return the reason if it was left out."""
        if block.title:
            (self.folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.title).write_text(block.code)
            return None
        if block.kind == "not run":
            check_commands(block)
            return None
        if block.kind == "run by":
            if not (ROOT / block.detail).is_file():
                raise PageError(f"line {block.line}: there is no {block.detail}")
            return None
        if (block.kind, block.detail) == ("needs", "data") and not os.environ.get("PARITYSCOPE_DATA"):
            return f"line {block.line} needs PARITYSCOPE_DATA"
        if (block.kind, block.detail) == ("needs", "source"):
            shutil.copytree(ROOT / "src", self.folder / "src", dirs_exist_ok=True)
            self.env["PYTHONPATH"] = str(self.folder / "src")
        printed = self._python(block) if block.language == "python" else self._bash(block)
        if block.expected is not None and not matches(block.expected, printed):
            raise PageError(f"line {block.line}: the page shows\n{block.expected}\nbut this was printed:\n{printed}")
        return None

    def _python(self, block):
        code = compile("\n" * block.line + block.code, "page", "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.chdir(self.folder):
            sys.modules[self.module.__name__] = self.module
            try:
                exec(code, self.module.__dict__)
            finally:
                del sys.modules[self.module.__name__]
        return printed.getvalue()

    def _bash(self, block):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block.code],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        if done.returncode:
            raise PageError(
                f"line {block.line}: exit code {done.returncode} of\n{block.code}\n{done.stdout}{done.stderr}"
            )
        return done.stdout


def run_page(text, folder, *, slow=False):
    """Run a page's blocks in a folder; return why blocks were left out."""
    runner = Runner(folder)
    try:
        left_out = [runner.run(block) for block in blocks_of(text) if slow or block.kind != "slow"]
    finally:
        end_jobs(runner.programs)
    return [reason for reason in left_out if reason]


def check_commands(block):
    """Check the commands of a block that is not run: programs, their subcommands, options, targets and extras."""
    if block.language != "bash" or not block.detail:
        raise PageError(f"line {block.line}: only a bash block can be left out, with a reason")
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words = words[1:]
        if words:
            check_command(words, f"line {block.line}: {line.strip()}")


def check_command(words, where):
    program, arguments = words[0].removeprefix(".venv/bin/"), words[1:]
    if program == "parityscope":
        group = typer.main.get_command(app)
        command = group.commands.get(arguments[0])
        if command is None:  # only looked up: an option of the program itself would act at once
            if arguments[0] not in {"--help", *(name for option in group.params for name in option.opts)}:
                raise PageError(f"{where}: no such command or option {arguments[0]!r}")
            return
        try:
            command.make_context(arguments[0], arguments[1:])
        except typer.Exit:  # --help
            pass
        except USAGE_ERROR as error:
            raise PageError(f"{where}: {error}") from None
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for extra in re.findall(r"\[([\w,]+)\]", " ".join(arguments)):
            if not set(extra.split(",")) <= set(extras):
                raise PageError(f"{where}: no such extra")
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
        if not {word for word in arguments if "=" not in word} <= set(targets):
            raise PageError(f"{where}: no such target")
    elif program not in ("git", "cd", "dask", "python", "tmux"):
        raise PageError(f"{where}: a program this check does not know")

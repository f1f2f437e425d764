"""Run the code blocks of a documentation page, top to bottom, as a reader would.

A page is markdown. What its fenced blocks mean:

- `python` blocks share one namespace. A `text` block directly after one is what it must print.
- `bash` blocks run with `bash -e`; a `text` block directly after one is what it must print to standard output.
- A block with a title (```` ```csv title="table.csv" ````) is written to that file and not run.
- In expected output `…` stands for anything within a line, and a line of only `…` for any lines.

Comments directly above a block say what is special about it; a block may have several:

- `<!-- slow: 3 minutes -->`               runs only in the page's slow test;
- `<!-- needs: data -->`                   runs only where PARITYSCOPE_DATA names a folder;
- `<!-- needs: network -->`                is left out where the package index cannot be reached;
- `<!-- needs: sbatch -->`                 gets a Slurm of one node, and runs only where it is installed;
- `<!-- needs: models -->`                 finds a tiny language model under each name that follows `model`;
- `<!-- needs: source -->`                 works in a copy of the source tree, which commands then use;
- `<!-- needs: clone -->`                  works in a copy of what a clone has, with an environment of its own, in
                                           which pip finds the libraries of this one and, without `network`, no others;
- `<!-- until: http://127.0.0.1:8321/ -->` is stopped with Ctrl-C once that address answers, and must end well;
- `<!-- machines: 10.0.0.5:8786 -->`       each line is a machine's, a process here: the last must end well, the others,
                                           started before it in order, go on until then;
- `<!-- run by: FILE -->`                  run by that test instead, which names the page.

A port that such a block names is replaced by a free one, and the address of a machine by this one's.
All blocks of a page work in one temporary folder. Indented blocks are formulas: a command in one is an error.
"""

import contextlib
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import types
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import slurm_cluster
from warm_command import CLIENT, WARM

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs"

FENCE = re.compile(
    r"(?P<comments>(?:^[ ]*<!--\ [a-z ]+:\ [^\n]*?\ -->\n)*)"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.M | re.S | re.X,
)
NEEDS = ("data", "network", "sbatch", "models", "source", "clone")
KINDS = ("slow", "needs", "until", "machines", "run by")
CLONE = ("src", "benchmarks", "Makefile", "constraints.txt", "pyproject.toml", "README.md", "LICENSE")
PROGRAM = "if __name__ == '__main__':\n    from {} import main\n    main()\n"
COMMAND_LINE = PROGRAM.format("parityscope.apps.cli")
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 is what pip reads as the option being given
UNREACHABLE = re.compile("package index reachable|NewConnectionError|name resolution|ConnectTimeout")
COMMAND = re.compile(r"^(?: {4}|\t)\$? *(?:parityscope |python |pip |make |import |from \w+ import |\.venv)", re.M)


@dataclass
class Block:
    """One fenced block: its code, where it stands, what it must print, and what the comments above it say."""

    language: str
    code: str
    line: int
    title: str | None = None
    comments: dict[str, str] = field(default_factory=dict)
    expected: str | None = None

    @property
    def needs(self):
        return self.comments["needs"].split(", ") if "needs" in self.comments else []


class PageError(AssertionError):
    """What a page says is not what happens."""


def blocks_of(text):
    """Return the page's blocks in order; an output that follows no code, or code that is no block, is an error."""
    blocks, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.M)
        title = re.search(r'title="([^"]+)"', match["options"])
        comments = dict(re.findall(r"<!-- ([a-z ]+): (.*?) -->", match["comments"]))
        block = Block(match["language"], code, line, title and title[1], comments)
        if unknown := [*(comments.keys() - KINDS), *(set(block.needs) - set(NEEDS))]:
            raise PageError(f"line {line}: unknown comment {unknown[0]!r}")
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
        self.folder, self.programs, self.warm = folder / "page", folder / "bin", folder / "warm"
        for place in (self.folder, self.programs, self.warm):
            place.mkdir()
        self.env = {
            **os.environ,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "120",
            "MPLBACKEND": "agg",
            "HOME": str(folder),  # a page changes nothing of the user's
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        }
        self._program(
            self.programs / "python",
            f"import os, sys\nos.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n",
        )
        self._program(self.programs / "dask", PROGRAM.format("dask.__main__"))
        self._program(self.programs / "parityscope", COMMAND_LINE)
        self._program(self.warm / "parityscope", CLIENT.format(address=WARM.address(self.env)) + COMMAND_LINE)
        self.module = types.ModuleType("documentation_page")
        self.started, self.slurm = contextlib.ExitStack(), None

    def _program(self, path, code):
        path.write_text(f"#!{sys.executable}\n{code}")
        path.chmod(0o755)

    def run(self, block):
        """Run one block or write its file; return the reason if it was left out."""
        if block.title:
            (self.folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.title).write_text(block.code)
            return None
        if "run by" in block.comments:
            if not (ROOT / block.comments["run by"]).is_file():
                raise PageError(f"line {block.line}: there is no {block.comments['run by']}")
            return None
        if "data" in block.needs and not os.environ.get("PARITYSCOPE_DATA"):
            return f"line {block.line} needs PARITYSCOPE_DATA"
        if "sbatch" in block.needs and slurm_cluster.MISSING:
            return f"line {block.line} {slurm_cluster.REASON}"
        self._provide(block)
        try:
            printed = self._printed(block)
        except PageError as error:
            if "network" in block.needs and UNREACHABLE.search(str(error)):
                return f"line {block.line} needs the package index"
            raise
        if block.expected is not None and not matches(block.expected, printed):
            raise PageError(f"line {block.line}: the page shows\n{block.expected}\nbut this was printed:\n{printed}")
        return None

    def _provide(self, block):
        if "sbatch" in block.needs:
            self._start_slurm()
        if "models" in block.needs:
            from tiny_language_models import save_tiny

            for seed, name in enumerate(dict.fromkeys(re.findall(r"model (\S+)", block.code))):
                save_tiny(self.folder / name, "qwen2", seed)
        if "source" in block.needs:
            self._copy("src")
            self.warm = None
            self.env["PYTHONPATH"] = str(self.folder / "src")
        if "clone" in block.needs:
            self._clone()
            for name in OFFLINE:
                self.env.pop(name, None)
            self.env |= {} if "network" in block.needs else OFFLINE

    def _start_slurm(self):
        if self.slurm is None:
            self.slurm = self.started.enter_context(slurm_cluster.slurm_on_loopback())
            self.env["SLURM_CONF"] = self.slurm.env["SLURM_CONF"]

    def _copy(self, name):
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, self.folder / name, dirs_exist_ok=True, ignore=ignore)
        else:
            shutil.copy(ROOT / name, self.folder)

    def _clone(self):
        environment = self.folder / ".venv"
        if environment.exists():
            return
        for name in CLONE:
            self._copy(name)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        pip = environment / "bin" / "pip"
        pip.write_text(f'#!/bin/sh\nexec {environment}/bin/python -m pip "$@"\n')
        pip.chmod(0o755)
        (libraries,) = environment.glob("lib/python*/site-packages")
        (libraries / "of_the_tests.pth").write_text(sysconfig.get_path("purelib"))
        self.warm = None
        self.env |= {
            "PATH": f"{environment}/bin:{self.env['PATH']}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "LM_CACHE": f"{self.env['XDG_CACHE_HOME']}/parityscope",
        }
        self.env.pop("PYTHONPATH", None)

    def _printed(self, block):
        if block.language == "python":
            return self._python(block)
        if "until" in block.comments:
            return self._until(block, block.comments["until"])
        if "machines" in block.comments:
            return self._machines(block, block.comments["machines"])
        with self._started(block.code, warm=self.warm) as process:
            return self._ended(block, process)

    def _python(self, block):
        code = compile("\n" * block.line + block.code, "page", "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.chdir(self.folder):
            sys.modules[self.module.__name__] = self.module
            try:
                exec(code, self.module.__dict__)
            finally:
                del sys.modules[self.module.__name__]
        return printed.getvalue()

    def _until(self, block, address):
        port = urlsplit(address).port
        if f"--port {port}" in block.code:
            free = free_port()
            code = block.code.replace(f"--port {port}", f"--port {free}")
            address = address.replace(str(port), str(free))
        else:
            code = block.code
            if answers(address):
                raise PageError(f"line {block.line}: {address} answers before anything was started")
        with self._started(code) as process:
            wait_for(lambda: answers(address) or process.poll() is not None, f"line {block.line}: {address} answers")
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            return self._ended(block, process, codes=(0, 130), seconds=60)

    def _machines(self, block, address):
        host, port = address.split(":")
        free = free_port()
        code = block.code.replace(address, f"127.0.0.1:{free}").replace(f"--port {port}", f"--port {free}")
        *others, last = re.split(r"(?<!\\)\n", code.strip())
        with contextlib.ExitStack() as started:
            machines = []
            for line in others:
                machines.append(started.enter_context(self._started(line)))
                wait_for(lambda: listens(free) or machines[0].poll() is not None, f"line {block.line}: {host} answers")
            process = started.enter_context(self._started(last))
            printed = self._ended(block, process)
            for machine, line in zip(machines, others, strict=True):
                if machine.poll() is not None:
                    raise PageError(f"line {block.line}: ended before the last line did: {line}")
        return printed

    @contextlib.contextmanager
    def _started(self, code, warm=None):
        """Run code with bash; nothing of it is left afterwards. A warm command is fast, but no child of that bash."""
        env = {**self.env, "PATH": f"{warm}:{self.env['PATH']}"} if warm else self.env
        script = self.programs / f"block-{len(list(self.programs.iterdir()))}.sh"
        script.write_text(code)  # a file, so that bash stays the parent of every command
        output = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = ["bash", "-e", "-o", "pipefail", str(script)]
        process = subprocess.Popen(command, cwd=self.folder, env=env, start_new_session=True, **output)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def _ended(self, block, process, codes=(0,), seconds=1800):
        printed, errors = process.communicate(timeout=seconds)
        if process.returncode not in codes or "Traceback" in errors:
            raise PageError(f"line {block.line}: exit code {process.returncode} of\n{block.code}\n{printed}{errors}")
        return printed


def wait_for(happened, what):
    end = time.monotonic() + 120
    while not happened():
        if time.monotonic() > end:
            raise PageError(f"waited in vain: {what}")
        time.sleep(0.1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def run_page(text, folder, *, slow=False):
    """Run a page's blocks in a folder; return why blocks were left out."""
    runner = Runner(folder)
    with runner.started:
        left_out = [runner.run(block) for block in blocks_of(text) if slow or "slow" not in block.comments]
    return [reason for reason in left_out if reason]

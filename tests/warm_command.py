"""A command line that has its libraries loaded: a process that imports them once and forks for every call.

Most of what `parityscope` on a page costs is the second or two that importing torch takes. Every call is still a
process of its own, with its caller's arguments, folder, environment and streams; only its imports were done before.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

LIBRARIES = (
    "matplotlib.pyplot",
    "pandas",
    "sklearn.linear_model",
    "torch._dynamo",  # torch imports it when an optimiser takes its first step
    "parityscope.apps.cli",
    "parityscope.fit.files",
    "parityscope.papers.registry",
    "parityscope.apps.reproduce",
    "parityscope.apps.terminal.tables",
)
CLIENT = """
import json, os, socket, sys
if sys.argv[1:] and not sys.argv[1].startswith("-"):  # an option of the program itself needs no library
    with socket.socket(socket.AF_UNIX) as call:
        call.connect({address!r})
        socket.send_fds(call, [b"!"], [0, 1, 2])
        call.sendall(json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode() + b"\\n")
        sys.exit(int(call.recv(16) or 70))
"""


class WarmCommand:
    """The process with the libraries, from the first use to the end of the tests."""

    def __init__(self):
        self.folder = self.process = None

    def address(self, env):
        """Return where it listens; it is started with this environment if it is not there yet."""
        if self.process is None:
            self.folder = tempfile.TemporaryDirectory(prefix="parityscope-")
            path = Path(self.folder.name) / "socket"
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
                listening.listen()
                self.process = subprocess.Popen(
                    [sys.executable, __file__, str(listening.fileno())],
                    stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                    pass_fds=[listening.fileno()],
                    env=env,
                    cwd=self.folder.name,
                )
        return str(Path(self.folder.name) / "socket")

    def stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(60)
            self.folder.cleanup()
            self.folder = self.process = None


WARM = WarmCommand()  # of all tests in a process
atexit.register(WARM.stop)


def become_a_command(descriptor):
    """Serve calls for ever; return in the process of a call only, which is then that command."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):  # an extra may be missing
            importlib.import_module(name)
    gc.freeze()  # the collector leaves what is shared alone
    with socket.socket(fileno=descriptor) as listening:
        while listening in select.select([listening, sys.stdin], [], [])[0]:
            call, _ = listening.accept()
            if os.fork() == 0:
                _, streams, _, _ = socket.recv_fds(call, 1, 3)
                request = call.makefile().readline()
                if child := os.fork():
                    answer_when_ended(call, child)
                    os._exit(0)
                call.close()
                sys.argv, folder, environment = json.loads(request)
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(environment)
                limit_memory(environment.get("PARITYSCOPE_TEST_MEMORY"))
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                    os.close(stream)
                return
            call.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
    sys.exit()


def limit_memory(told):
    """Let what asks for more address space than that fail, instead of the machine."""
    if told is not None:
        resource.setrlimit(resource.RLIMIT_AS, (int(told), int(told)))


def answer_when_ended(call, child):
    """Send the exit code of the command; end the command if its caller ended before it."""
    ended, status = 0, 0
    while not ended:
        if select.select([call], [], [], 0.01)[0]:
            os.kill(child, signal.SIGKILL)
        ended, status = os.waitpid(child, os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(OSError):
        call.sendall(str(code if code >= 0 else 128 - code).encode())


def run_and_end():
    """Run the command and end as Python does, but without taking every library apart, which would cost a second."""
    from parityscope.apps.cli import main

    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    become_a_command(int(sys.argv[1]))
    run_and_end()

"""Run commands or a program in a process in which some libraries are not installed.

    python without_libraries.py '["matplotlib"]' '[["claims", "H1"], ["reproduce"]]'

prints a JSON list with the exit code and the text of every command; a text in place of the list is run as a program.
"""

import contextlib
import io
import json
import sys
from importlib.machinery import PathFinder

MISSING = set()


class _WithoutThem(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname.partition(".")[0] in MISSING else super().find_spec(fullname, path, target)


def answer(arguments):
    from parityscope.apps.cli import main

    sys.argv = ["parityscope", *arguments]
    said = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
    return code, said.getvalue()


if __name__ == "__main__":
    MISSING.update(json.loads(sys.argv[1]))
    sys.meta_path[:] = [_WithoutThem if finder is PathFinder else finder for finder in sys.meta_path]
    work = json.loads(sys.argv[2])
    if isinstance(work, str):
        exec(work)
    else:
        print(json.dumps([answer(arguments) for arguments in work]))

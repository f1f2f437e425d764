"""The command line: argument parsing only. Files of this folder register their commands."""

from __future__ import annotations

import sys
from importlib import import_module

from parityscope.apps.cli.application import ERRORS, FILES, app
from parityscope.core.cells import as_text
from parityscope.core.errors import InvalidInput, naming_the_extra

__all__ = ["app", "main"]

for _file in FILES:
    import_module(f"parityscope.apps.cli.{_file}")


def main() -> None:
    """Run the command line; bad input is one sentence and exit code 2, never a traceback."""
    try:
        with naming_the_extra():
            app()
    except InvalidInput as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "can't allocate memory" not in str(error):
            raise
        _stop("there is not enough memory for this: choose smaller sizes")


def _stop(sentence: str) -> None:
    # Names of files may hold bytes that are no text, and what others wrote control characters.
    shown = "\n".join(map(as_text, sentence.split("\n")))
    ERRORS.print(f"parityscope: {shown}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(2)

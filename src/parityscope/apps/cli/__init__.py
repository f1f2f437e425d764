"""The command line: argument parsing only. Files of this folder register their commands."""

from __future__ import annotations

import sys
from importlib import import_module

from parityscope.apps.cli.application import ERRORS, FILES, app
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


def _stop(sentence: str) -> None:
    ERRORS.print(f"parityscope: {sentence}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(2)

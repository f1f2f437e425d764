"""The exceptions users meet: one sentence that says what to change, or what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# Which extra brings a library that the core does without.
EXTRA_OF = {
    "matplotlib": "plots",
    "jinja2": "plots",
    "fastapi": "web",
    "uvicorn": "web",
    "websockets": "web",
    "plotly": "web",
    "dask": "cluster",
    "distributed": "cluster",
    "dask_jobqueue": "cluster",
    "submitit": "cluster",
    "sklearn": "sklearn",
    "threadpoolctl": "sklearn",
    "pandas": "sklearn",
    "bed_reader": "plink",
    "skrebate": "baselines",
    "lightgbm": "peers",
    "interpret": "peers",
    "shapiq": "peers",
    "transformers": "lm",
    "gguf": "lm",
    "accelerate": "lm",
    "pyarrow": "export",
    "tensorboard": "export",
}


class InvalidInput(ValueError):
    """Bad input from the user. The command line prints the sentence and exits with code 2.

    >>> from parityscope import Parity
    >>> try:
    ...     Parity(n=5, support=(1, 7))
    ... except InvalidInput as error:
    ...     print(error)
    support position 7 is out of range: 0 to 4 for n = 5
    """


class MissingExtra(InvalidInput, ImportError):
    """An optional library is not installed; the sentence names the command that installs it."""


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Import optional libraries under this: one that is missing becomes a `MissingExtra`.

    >>> with naming_the_extra():
    ...     raise ModuleNotFoundError(name="matplotlib.figure")
    Traceback (most recent call last):
    parityscope.core.errors.MissingExtra: this needs matplotlib, which is not installed: pip \
install 'parityscope[plots]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRA_OF:
            raise
        raise MissingExtra(
            f"this needs {library}, which is not installed: pip install 'parityscope[{EXTRA_OF[library]}]'"
        ) from None

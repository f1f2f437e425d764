"""The one exception users meet: a sentence that names the value and the allowed range."""


class InvalidInput(ValueError):
    """Bad input from the user. The command line prints the sentence and exits with code 2."""

"""The one exception users meet: a sentence that names the value and the allowed range."""


class InvalidInput(ValueError):
    """Bad input from the user. The command line prints the sentence and exits with code 2.

    >>> from parityscope import Parity
    >>> try:
    ...     Parity(n=5, support=(1, 7))
    ... except InvalidInput as error:
    ...     print(error)
    support position 7 is out of range: 0 to 4 for n = 5
    """

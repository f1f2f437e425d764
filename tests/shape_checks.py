"""The run-time type checker of the tests: shapes and types, an int being a float where one is asked for."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

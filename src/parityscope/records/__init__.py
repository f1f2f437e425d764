"""Rows on disk: content-addressed by config and code, crash-safe, never a pickle.

A store is a folder with one SQLite file, `store.sqlite`: one row per config, done or failed, its arrays beside it as
safetensors bytes, a checksum over all of it. Rows that belong together are committed together, so a kill at any moment
leaves all of them or none, and every committed row is durable. Nothing is locked beyond a commit.
"""

from parityscope.records.config import Config, LooseNumbers, Numbers, Result
from parityscope.records.export import read_text, rows_in, write_text
from parityscope.records.row import Outcome, Row, StoredRow
from parityscope.records.store import Store

__all__ = [
    "Config",
    "LooseNumbers",
    "Numbers",
    "Outcome",
    "Result",
    "Row",
    "Store",
    "StoredRow",
    "read_text",
    "rows_in",
    "write_text",
]

"""Rows on disk: content-addressed by config, crash-safe, never a pickle.

A store is a folder with one SQLite file, `store.sqlite`: one row per config, done or failed, its arrays beside it as
safetensors bytes, a checksum over all of it. Rows that belong together are committed together, so a kill at any moment
leaves all of them or none, and every committed row is durable. Locks are the kernel's: a dead process holds none.
"""

from parityscope.store.database import SCHEMA_VERSION
from parityscope.store.rows import Outcome, Store, array_bytes, config_key, current_versions, key_of
from parityscope.store.text import read_text, rows_in, write_text

__all__ = [
    "SCHEMA_VERSION",
    "Outcome",
    "Store",
    "array_bytes",
    "config_key",
    "current_versions",
    "key_of",
    "read_text",
    "rows_in",
    "write_text",
]

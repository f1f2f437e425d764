"""H1's bounds and constants as pure functions."""

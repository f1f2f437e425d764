"""The papers as code: a folder each, with its theory, its claims and its figures; `registry.py` lists them."""

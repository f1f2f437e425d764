"""Columns of a table as bits."""

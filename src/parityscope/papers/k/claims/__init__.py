"""Statements as executable checks."""

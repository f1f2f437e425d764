"""Ways to search for a hidden parity."""

"""Light weights rounded to a lattice, with a proved error."""

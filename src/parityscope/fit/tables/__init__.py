"""How tables come in: a reader per format, what is done with missing values, and columns as numbers."""

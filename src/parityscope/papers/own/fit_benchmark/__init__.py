"""`fit` beside other methods, on planted and public tables."""

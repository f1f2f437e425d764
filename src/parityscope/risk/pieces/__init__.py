"""A loss of a readout as piecewise polynomials."""

"""What every engine, readout, recipe, figure and claim must pass; a new one is tested by a line."""

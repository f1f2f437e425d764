"""Training: recipes, descent on many runs at once, checkpoints."""

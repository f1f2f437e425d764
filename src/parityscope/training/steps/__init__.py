"""What a step of a training does."""

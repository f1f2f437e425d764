"""What does it take to learn a parity: every method on the same examples, and a place for one's own."""

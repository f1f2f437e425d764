"""The interactions behind a target, from candidates to the answer."""

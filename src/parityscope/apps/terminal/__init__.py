"""What people see in a terminal: progress bars, heat maps and tables."""

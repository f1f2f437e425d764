"""What people use: the command line, the report, the explorer."""

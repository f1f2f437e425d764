"""What everything else stands on: errors, threads, files, ties, statistics, the look of a figure."""

"""The explorer: watch heads find the hidden bits, in a browser."""

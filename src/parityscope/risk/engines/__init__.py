"""The engines: ways to take a mean over all inputs."""

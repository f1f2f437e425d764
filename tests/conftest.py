"""Settings for every test: one thread per worker, reproducible hypothesis."""

import signal

import torch
from hypothesis import settings

# A shell starts what runs in its background with Ctrl-C ignored, and the commands tested here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)  # two pytest workers share two cores
settings.register_profile("parityscope", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("parityscope")

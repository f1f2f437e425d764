"""Settings for every test: one thread per worker, reproducible hypothesis."""

import torch
from hypothesis import settings

torch.set_num_threads(1)  # two pytest workers share two cores
settings.register_profile("parityscope", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("parityscope")

"""Tests run one thread, so that two of them at a time do not fight for the cores."""

import torch

torch.set_num_threads(1)

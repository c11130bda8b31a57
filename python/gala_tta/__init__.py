"""Test-time adaptation with layer selection, for any PyTorch module.

>>> import gala_tta as gala
>>> adapter = gala.Adapter(model, method="tent")  # doctest: +SKIP
>>> logits = adapter(images)  # doctest: +SKIP
"""

# torch before the heart: both use OpenMP, and the heart then takes the copy that torch brought.
import torch  # noqa: F401

from gala_tta import callbacks
from gala_tta._core import Error, HealthEvent, StepRecord, canonical_spec
from gala_tta._records import Last, Totals
from gala_tta._selecting import Row, Rows
from gala_tta.adapter import Adapter
from gala_tta.listing import describe_options, list_methods, list_parts

__all__ = [
    "Adapter",
    "Error",
    "HealthEvent",
    "Last",
    "Row",
    "Rows",
    "StepRecord",
    "Totals",
    "callbacks",
    "canonical_spec",
    "describe_options",
    "list_methods",
    "list_parts",
]

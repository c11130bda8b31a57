"""Test-time adaptation with layer selection, for any PyTorch module.

>>> import gala_tta as gala
>>> adapter = gala.Adapter(model, method="tent")  # doctest: +SKIP
>>> logits = adapter(images)  # doctest: +SKIP
"""

import importlib
from types import ModuleType

# torch before the heart: both use OpenMP, and the heart then takes the copy that torch brought.
import torch  # noqa: F401

from gala_tta import callbacks
from gala_tta._core import Error, HealthEvent, StepRecord, canonical_spec
from gala_tta._records import Last, Totals
from gala_tta._selecting import Row, Rows
from gala_tta.adapter import Adapter
from gala_tta.listing import describe_options, list_methods, list_parts
from gala_tta.records import load_records
from gala_tta.traces import load_trace

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
    "load_records",
    "load_trace",
]


def __getattr__(name: str) -> ModuleType:
    """The batteries, when they are asked for: what they need may be missing."""
    if name in ("corrupt", "plots", "streams"):
        return importlib.import_module(f"gala_tta.{name}")
    raise AttributeError(f"module 'gala_tta' has no attribute {name!r}")

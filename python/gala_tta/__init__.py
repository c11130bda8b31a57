"""Test-time adaptation with layer selection, for any PyTorch module."""

import importlib
from types import ModuleType

# torch before the heart: both use OpenMP, and the heart then takes the copy that torch brought.
import torch  # noqa: F401

from gala_tta import _core
from gala_tta.records import load_records
from gala_tta.traces import load_trace

__all__ = ["Error", "canonical_spec", "load_records", "load_trace"]

Error = _core.Error
canonical_spec = _core.canonical_spec


def __getattr__(name: str) -> ModuleType:
    """The batteries, when they are asked for: what they need may be missing."""
    if name in ("corrupt", "plots", "streams"):
        return importlib.import_module(f"gala_tta.{name}")
    raise AttributeError(f"module 'gala_tta' has no attribute {name!r}")

"""Test-time adaptation with layer selection, for any PyTorch module."""

# torch before the heart: both use OpenMP, and the heart then takes the copy that torch brought.
import torch  # noqa: F401

from gala_tta import _core

__all__ = ["canonical_spec"]

canonical_spec = _core.canonical_spec

"""Test-time adaptation with layer selection, for any PyTorch module."""

# torch before the heart: both use OpenMP, and the heart then takes the copy that torch brought.
import torch  # noqa: F401

from gala_tta import _core

__all__ = ["Error", "canonical_spec"]

Error = _core.Error
canonical_spec = _core.canonical_spec

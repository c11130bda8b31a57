"""Who runs passes."""

from __future__ import annotations

from torch import Tensor

from gala_tta import _core
from gala_tta._pass import Frame, Kind, Passes


class Runner:
    """Runs passes one by one."""

    def __init__(self, passes: Passes, stepper: _core.Stepper, capture: bool) -> None:
        self._passes = passes
        self.problem = ""

    def run(self, images: Tensor, kind: Kind) -> Frame:
        """Make a pass over a batch."""
        return self._passes.run(images, kind)

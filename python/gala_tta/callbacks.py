"""What can be done after every batch: functions that get the adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gala_tta.adapter import Adapter


class TensorBoard:
    """Writes loss, cosines and weights of every step for TensorBoard.

    Parameters
    ----------
    log_dir
        Where events are written; the `tensorboard` package must be installed.
    cosines
        Whether the cosine of every layer is written too.
    """

    def __init__(self, log_dir: str, *, cosines: bool = True) -> None:
        # Only here, so that nobody else needs the package.
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(log_dir)
        self._cosines = cosines

    def __call__(self, adapter: Adapter) -> None:
        """Write what the last batch did."""
        last, writer = adapter.last, self._writer
        if last is None:
            return
        for record in last.steps:
            writer.add_scalar("gala/loss", record.loss, record.step)
            writer.add_scalar("gala/gradient_norm", record.gradient_norm, record.step)
            writer.add_scalar("gala/moved", len(record.selected), record.step)
            if self._cosines:
                for name, value in zip(last.layers, record.cosines, strict=False):
                    writer.add_scalar(f"cosine/{name}", value, record.step)
        if last.health is not None:
            batch = adapter.totals.batches
            writer.add_scalar("guard/effective_classes", last.health.effective_classes, batch)
            writer.add_scalar("guard/displacement", last.health.displacement, batch)

    def close(self) -> None:
        """End the file."""
        self._writer.close()

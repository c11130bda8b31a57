"""The example of figures runs, and makes each of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="not in a checkout")
def test_the_figures_of_the_committed_records_are_made(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    ending = subprocess.run(
        [sys.executable, str(ROOT / "python/examples/plot_records.py"), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ending.returncode == 0, ending.stderr
    made = sorted(path.stem for path in tmp_path.iterdir())
    assert made == [
        "cosines",
        "error_against_cost",
        "error_over_stream",
        "leaderboard",
        "selection",
        "selectors",
    ]
    assert all(path.stat().st_size > 10_000 for path in tmp_path.iterdir())

"""The examples run, and say what they should."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrap_a_model.py", "moved 1: "),
        ("own_selector.py", "moved: "),
        ("coming_from.py", "cotta: 4 steps"),
    ],
)
def test_an_example_runs(name: str, words: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout

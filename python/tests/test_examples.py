"""The examples run, and say what they should."""

import os
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
    assert words in output_of(name)


def output_of(name: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError"])
def test_wraps_a_model_of_its_own_without_torchvision(error: str, tmp_path: pathlib.Path) -> None:
    # Both are what a torchvision for another build of torch ends in.
    (tmp_path / "torchvision.py").write_text(f'raise {error}("not for this torch")\n')
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    said = output_of("wrap_a_model.py", PYTHONPATH=path)
    assert "of our own, without torchvision (not for this torch)" in said
    assert "moved 1: " in said


def test_wraps_a_model_of_torchvision() -> None:
    try:
        import torchvision.models  # noqa: F401
    except (ImportError, RuntimeError) as problem:
        pytest.skip(f"torchvision does not load here: {problem}")
    said = output_of("wrap_a_model.py")
    assert "torchvision's ResNet-18\n" in said
    assert "moved 1: " in said

"""Finds the command line program `gala` and runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["find_program", "main"]

_ENVIRONMENT = "GALA_PROGRAM"


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _beside() -> list[Path]:
    """Where a program built with the package, or beside it in a checkout, would lie."""
    package = Path(__file__).resolve().parent
    return [package / "bin" / "gala", package.parents[1] / "build" / "cli" / "gala"]


def find_program() -> Path:
    """The program: what GALA_PROGRAM names, else one beside the package, else one on the path.

    Raises
    ------
    FileNotFoundError
        Where there is none; it says where it looked.
    """
    named = os.environ.get(_ENVIRONMENT)
    if named:
        path = Path(named)
        if not _is_program(path):
            raise FileNotFoundError(f"{_ENVIRONMENT}={named} is no program that can be run")
        return path
    for path in _beside():
        if _is_program(path):
            return path
    on_path = shutil.which("gala")
    if on_path:
        return Path(on_path)
    places = ", ".join(str(path) for path in _beside())
    raise FileNotFoundError(
        f"the program gala is not there: {_ENVIRONMENT} is not set, and neither {places} nor the "
        "path has it. It is a C++ program on LibTorch that pip does not build: `make build` in a "
        "checkout makes build/cli/gala"
    )


def _run(program: Path, arguments: Sequence[str]) -> int:
    command = [str(program), *arguments]
    if os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(program, command)  # signals and exit codes are the program's own
    return subprocess.run(command, check=False).returncode


_HELP = """\
usage: python -m gala_tta COMMAND ...

  export      make a network of PyTorch into a file that gala adapts (export --help)

Anything else goes to the program gala: adapt, corrupt, data, demo, inspect, list, report, run and
train.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of the package; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["export"]:
        from gala_tta import export

        export.main(words[1:], program="python -m gala_tta export")
        return 0
    try:
        program = find_program()
    except FileNotFoundError as missing:
        if not words or words[0] in ("-h", "--help"):
            print(_HELP)
            print(f"Now {missing}.")
            return 0 if words else 2
        print(f"gala_tta: {missing}", file=sys.stderr)
        return 2
    if not words or words[0] in ("-h", "--help"):
        print(_HELP, flush=True)
    return _run(program, words)

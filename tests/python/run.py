#!/usr/bin/env python3
"""Builds the Python package with pip, in an environment of its own, and runs its checks and tests.

    run.py --source DIR --venv DIR --program FILE [pytest's arguments]

torch is that of the Python that runs this; the rest comes from the registry, once. Ends with 77 (skipped)
where it cannot be reached.
"""
import argparse
import hashlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import venv

SKIPPED = 77


def requirements(source):
    """What pyproject.toml asks for: to build, and to test."""
    text = (source / "pyproject.toml").read_text()
    lists = [re.search(pattern, text, re.M | re.S) for pattern in
             (r"^requires = \[(.*?)\]", r"^test = \[(.*?)\]")]
    return sorted({name for found in lists for name in re.findall(r'"([^"]+)"', found.group(1))}
                  | {"cmake>=3.25", "ninja"})


def make_environment(folder):
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True, clear=True)
    torch = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "torch-of-the-tests.pth").write_text(f"{torch}\n")
    return python


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=False, **options).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("source", "venv", "program"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    given, further = parser.parse_known_args()
    python, wanted = make_environment(given.venv), requirements(given.source)
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    stamp = given.venv / "requirements"
    mark = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != mark:
        # Also what the Python with torch has: its programs lie elsewhere.
        if run(*pip, "--ignore-installed", *wanted):
            print("skipped: the packages that build and test it could not be had")
            return SKIPPED
        stamp.write_text(mark)
    tools = given.venv / "bin"
    environment = {**os.environ, "GALA_PROGRAM": str(given.program), "OMP_NUM_THREADS": "1",
                   "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    steps = [
        [*pip, "--no-build-isolation", "--no-deps", "--force-reinstall", "."],
        [tools / "ruff", "check"],
        [tools / "ruff", "format", "--check"],
        [tools / "mypy", "--python-executable", python],
        [python, "-m", "pytest", *further],
    ]
    for step in steps:
        if run(*step, cwd=given.source, env=environment):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

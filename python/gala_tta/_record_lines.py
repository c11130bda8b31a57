"""Reads the lines of record stores, as docs/records.md describes them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["Json", "Paths", "Run", "read_stores", "schema_problem"]

#: The newest version of a line that is understood.
SCHEMA = 1

Json = dict[str, Any]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Errors = Literal["raise", "warn"]


@dataclass
class Run:
    """A line of a run, and where it stands."""

    record: Json
    file: Path
    line: int
    #: The labels of its further places, each with its line.
    places: list[tuple[Json, int]] = field(default_factory=list)


def read_stores(paths: Paths, errors: Errors) -> list[Run]:
    """All runs of stores or files, in order; a run that several have is that of the first."""
    if errors not in ("raise", "warn"):
        raise ValueError(f'errors cannot be "{errors}" (expected raise or warn)')
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    runs: dict[str, Run] = {}
    for path in paths:
        file = Path(path)
        file = file / "records.jsonl" if file.is_dir() else file
        if not file.is_file():
            raise FileNotFoundError(f"the store {path} cannot be read: {file} does not exist")
        for key, run in _read_file(file, errors).items():
            if key in runs:
                runs[key].places += run.places
            else:
                runs[key] = run
    return list(runs.values())


def _read_file(file: Path, errors: Errors) -> dict[str, Run]:
    lines = file.read_bytes().split(b"\n")
    # Behind the last newline stands nothing, or a line that is being written. After a power cut
    # even the newline may be there while what precedes it is not.
    rest = lines.pop()
    torn = len(lines) + 1 if rest else 0
    if not rest and lines and _parse(lines[-1])[1]:
        torn = len(lines)
        lines.pop()
    runs: dict[str, Run] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        problem = _take_in(line, number, file, runs)
        if problem:
            problems.append(f"{file}: line {number} {problem}")
    if problems and errors == "raise":
        raise ValueError(
            f'{problems[0]} (errors="warn" leaves such lines out; {len(problems)} of {len(lines)})'
        )
    if torn:
        problems.append(
            f"{file}: line {torn} is not whole (it is being written, or its writer was killed)"
        )
    for problem in problems:
        warnings.warn(f"{problem}: left out", stacklevel=5)
    return runs


def _parse(line: bytes) -> tuple[Any, str]:
    """What a line says, or why it says nothing."""
    try:
        return json.loads(line.decode("utf-8")), ""
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as problem:
        return None, f"is not JSON ({problem})"


def schema_problem(line: Any) -> str:
    """Why a line is none that can be read here; empty where it is one."""
    if not isinstance(line, dict):
        return "is not a record"
    schema = line.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool):
        return "is not a record: has no schema"
    if schema > SCHEMA:
        return f"is of schema {schema}, this package reads up to {SCHEMA}: use a newer gala_tta"
    return "" if schema >= 1 else f"is of schema {schema}, which never was"


def _take_in(text: bytes, number: int, file: Path, runs: dict[str, Run]) -> str:
    """Adds what a line says to the runs; returns why it could not."""
    line, problem = _parse(text)
    problem = problem or schema_problem(line)
    if problem:
        return problem
    kind, key, labels = line.get("kind"), line.get("key"), line.get("labels")
    if kind not in ("run", "place"):
        return f'is of the unknown kind "{kind}"'
    if not isinstance(key, str) or not isinstance(labels, dict):
        return "has no key or no labels"
    if kind == "place":
        if key not in runs:
            return "gives a place to a run that is not there"
        runs[key].places.append((labels, number))
        return ""
    if key in runs:
        return f"has the key {key} of an earlier one"
    runs[key] = Run(line, file, number)
    return ""

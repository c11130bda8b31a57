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
    #: The folder beside whose records traces lie.
    store: Path
    #: The labels of its further places, each with its line.
    places: list[tuple[Json, int]] = field(default_factory=list)

    def give(self, places: list[tuple[Json, int]]) -> None:
        """Adds places that it lacks: writers that do not see each other give one twice."""
        for labels, line in places:
            if labels not in [self.record["labels"], *(known for known, _line in self.places)]:
                self.places.append((labels, line))


@dataclass
class _Place:
    """A place of a run that another file of the store has."""

    key: str
    labels: Json
    line: int


def read_stores(paths: Paths, errors: Errors) -> list[Run]:
    """All runs of stores or files, in order; a run that several have is that of the first."""
    if errors not in ("raise", "warn"):
        raise ValueError(f'errors cannot be "{errors}" (expected raise or warn)')
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    runs: dict[str, Run] = {}
    for path in paths:
        for key, run in _read_store(Path(path), errors).items():
            if key in runs:
                runs[key].places += run.places
            else:
                runs[key] = run
    return list(runs.values())


def _read_store(path: Path, errors: Errors) -> dict[str, Run]:
    """A file, or records.jsonl and the files of writers of their own as one."""
    files = [path]
    if path.is_dir():
        files = [path / "records.jsonl", *sorted(path.glob("records/*.jsonl"))]
    if not files[0].is_file():
        raise FileNotFoundError(f"the store {path} cannot be read: {files[0]} does not exist")
    store = path if path.is_dir() else path.parent
    runs: dict[str, Run] = {}
    waiting: list[_Place] = []
    lines = 0
    for file in files:
        found, places, count = _read_file(file, errors, lines, waits=len(files) > 1)
        lines += count
        waiting += places
        for key, run in found.items():
            run.store = store
            if key not in runs:
                runs[key] = run
                continue
            # Two writers made it: the one that ended first counts, with the places of both.
            first, second = sorted([runs[key], run], key=_date)
            first.give([(second.record["labels"], second.line), *second.places])
            runs[key] = first
    for place in waiting:
        if place.key in runs:
            runs[place.key].give([(place.labels, place.line)])
    return runs


def _date(run: Run) -> str:
    provenance = run.record.get("provenance")
    return str(provenance.get("date", "")) if isinstance(provenance, dict) else ""


def _read_file(
    file: Path, errors: Errors, before: int, waits: bool
) -> tuple[dict[str, Run], list[_Place], int]:
    """The runs of a file, its places of runs that are not there, and its number of lines.

    `before` counts the lines of the files before, so that lines keep their order.
    """
    lines = file.read_bytes().split(b"\n")
    # Behind the last newline stands nothing, or a line that is being written. After a power cut
    # even the newline may be there while what precedes it is not.
    rest = lines.pop()
    torn = len(lines) + 1 if rest else 0
    if not rest and lines and _parse(lines[-1])[1]:
        torn = len(lines)
        lines.pop()
    runs: dict[str, Run] = {}
    waiting: list[_Place] = []
    problems = []
    for number, line in enumerate(lines, 1):
        problem = _take_in(line, before + number, file, runs, waiting if waits else None)
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
        warnings.warn(f"{problem}: left out", stacklevel=6)
    return runs, waiting, len(lines)


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


def _take_in(
    text: bytes, number: int, file: Path, runs: dict[str, Run], waiting: list[_Place] | None
) -> str:
    """Add what a line says to the runs, or to the places that wait; return why it could not."""
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
            if waiting is None:
                return "gives a place to a run that is not there"
            waiting.append(_Place(key, labels, number))
            return ""
        runs[key].places.append((labels, number))
        return ""
    if key in runs:
        return f"has the key {key} of an earlier one"
    runs[key] = Run(line, file, number, file.parent)
    return ""

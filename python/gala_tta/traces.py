"""Traces, what each step saw and did, as pandas frames."""

from __future__ import annotations

import gzip
import json
import os
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gala_tta._record_lines import Json, schema_problem
from gala_tta.records import _number, _pandas

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load_trace"]


def load_trace(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Reads a trace: a file of a store (`traces/KEY.jsonl.gz`), or of `gala adapt --trace`.

    Returns
    -------
    pandas.DataFrame
        One row for each layer of each step: `step`, `window_step`, `loss`, `confident`, `layer`,
        `index` (in forward order), `cosine` and `distance`, which is 1 - cosine. A trace of
        `gala adapt` also has `batch`, `weight`, `update_norm`, `shift_norm`, `gradient_norm`,
        `selected`, and `correct` and `images` where labels are known. A step that was refused has
        no rows. A last line that was cut off is left out with a warning.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise ValueError(f"{file}: is not a trace: {problem}") from None
    lines = [line for line in content.split(b"\n") if line.strip()]
    rows: list[Json] = []
    names: list[str] | None = None
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text.decode("utf-8"))
            if number == 1 and "step" not in line:
                problem_text = schema_problem(line)
                if problem_text:
                    raise ValueError(problem_text)
                names = list(line["layers"])
                continue
            rows += _rows_of(line, names)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            if number == len(lines) and number > 1:
                warnings.warn(f"{file}: line {number} was cut off: left out", stacklevel=2)
                break
            raise ValueError(
                f"{file}: line {number} is not a step of a trace: {problem}"
            ) from problem
    if not rows:
        raise ValueError(f"{file}: holds no step of a trace")
    frame: pd.DataFrame = _pandas().DataFrame(rows)
    return frame


def _rows_of(line: Json, names: list[str] | None) -> list[Json]:
    step: Json = {
        "step": int(line["step"]),
        "window_step": int(line["window_step"]),
        "loss": _number(line.get("loss")),
        "confident": line.get("confident"),
    }
    if names is not None:
        return [
            {
                **step,
                "layer": name,
                "index": index,
                "cosine": 1 - distance,
                "distance": distance,
            }
            for index, (name, distance) in enumerate(_paired(names, line["distance"]))
        ]
    for name in ("batch", "gradient_norm", "correct", "images", "milliseconds"):
        if name in line:
            step[name] = line[name]
    selected = set(line["selected"])
    rows = []
    for index, layer in enumerate(line["layers"]):
        cosine = _number(layer.get("cosine"))
        rows.append(
            {
                **step,
                "layer": layer["name"],
                "index": index,
                "cosine": cosine,
                "distance": 1 - cosine,
                "weight": _number(layer.get("weight")),
                "update_norm": _number(layer.get("update_norm")),
                "shift_norm": _number(layer.get("shift_norm")),
                "selected": layer["name"] in selected,
            }
        )
    return rows


def _paired(names: list[str], distances: list[Any]) -> list[tuple[str, float]]:
    """Layers with their distances; no distances where the step was refused."""
    if distances and len(distances) != len(names):
        raise ValueError(f"has {len(distances)} layers, the first line has {len(names)}")
    return list(zip(names, map(_number, distances), strict=False))

"""Records of `gala run` as pandas frames: one row a run, and longer frames of what a run holds.

>>> import gala_tta as gala
>>> runs = gala.load_records("results")
>>> runs.groupby(["dataset", "method"])["error"].mean()

docs/records.md says what a record is.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gala_tta._record_lines import Errors, Json, Paths, Run, read_stores

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["choices", "domains", "layers", "load_records", "over_time"]

_LABELS = (
    "plan",
    "group",
    "row",
    "benchmark",
    "dataset",
    "backbone",
    "environment",
    "trial",
    "loss",
)
#: What the labels are called in frames.
_COLUMNS = tuple("method" if name == "row" else name for name in _LABELS)
_METRICS = (
    "accuracy",
    "error",
    "generalisation",
    "forgetting",
    "forgetting_in_norm",
    "validation",
)
_COSTS = (
    "total_ms",
    "load_ms",
    "batch_ms",
    "step_ms",
    "step_median_ms",
    "step_95_ms",
    "peak_memory",
)
_PARTS = ("forward", "backward", "measure", "select", "apply")
_PROVENANCE = (
    "gala",
    "commit",
    "compiler",
    "libtorch",
    "device",
    "cpu",
    "gpu",
    "threads",
    "jobs",
    "date",
)
#: Of a store without runs.
_EMPTY = ["key", *_COLUMNS, *_METRICS, "steps", "record", "superseded"]


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError:
        raise ImportError(
            "records are read into pandas frames: pip install pandas, or '.[records]' in a checkout"
        ) from None
    return pandas


def load_records(paths: Paths, *, places: bool = False, errors: Errors = "raise") -> pd.DataFrame:
    """Reads record stores.

    Parameters
    ----------
    paths
        A store (the folder with `records.jsonl`, and `records/` where writers had files of their
        own), a file of such lines, or several of either. A run that is in several is that of the
        first.
    places
        Give a run a row for each of its places in tables, not one alone: a plan then has all of its
        runs, those that it shares with another plan too.
    errors
        What becomes of a line in the middle that is not a record, or of a newer schema: "raise",
        as `gala report` does, or "warn", which leaves it out and says so. A last line that is not
        whole is left out with a warning in any case.

    Returns
    -------
    pandas.DataFrame
        One row a run. Labels (`row` is called `method`), metrics, counts, costs and provenance have
        columns of their own; `spec_*` are the parts of the spec; `selector`, `rate`, `visits` are
        read from them. What is not defined is missing. `record` has all of it, as the line has it.
        `superseded` marks rows whose place a later line has.
    """
    pandas = _pandas()
    rows: list[Json] = []
    latest: dict[str, tuple[int, int]] = {}  # of each spot in a table: the last line, and its row
    for run in read_stores(paths, errors):
        try:
            found = [_row(run, labels, line) for labels, line in _places(run, places)]
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            text = f"{run.file}: line {run.line} is not a record ({problem!r})"
            if errors == "raise":
                raise ValueError(text) from problem
            warnings.warn(f"{text}: left out", stacklevel=2)
            continue
        for row in found:
            spot = str([row["store"], *(row[name] for name in _COLUMNS), row.pop("hyper")])
            latest[spot] = max(latest.get(spot, (0, 0)), (row["line"], len(rows)))
            rows.append(row)
    frame: pd.DataFrame = pandas.DataFrame(rows, columns=None if rows else _EMPTY)
    if rows:
        frame["superseded"] = ~frame.index.isin([row for _line, row in latest.values()])
        frame["date"] = pandas.to_datetime(frame["date"], utc=True, errors="coerce")
    return frame


def _places(run: Run, all_of_them: bool) -> list[tuple[Json, int]]:
    first = (run.record["labels"], run.line)
    return [first, *run.places] if all_of_them else [first]


def _row(run: Run, labels: Json, line: int) -> Json:
    record = run.record
    spec, cost, provenance = record["spec"], record["cost"], record["provenance"]
    row: Json = {"key": record["key"]}
    for name, column in zip(_LABELS, _COLUMNS, strict=True):
        row[column] = labels.get(name, 0 if name == "trial" else "")
    row["hyper"] = sorted(labels.get("hyper", {}).items())
    row.update({f"hyper_{name}": _as_number(value) for name, value in row["hyper"]})
    metrics = {"forgetting_in_norm": _forgetting_in_norm(record), **record["metrics"]}
    row.update({name: _number(metrics.get(name)) for name in _METRICS})
    for name in ("steps", "refused", "skipped", "from_source", "unanswered"):
        row[name] = int(record.get(name, 0))
    row["images"] = sum(size * count for size, count in record["over_time"]["images"])
    row.update({name: _number(cost.get(name)) for name in _COSTS})
    parts = cost.get("parts_ms", {})
    row.update({f"{name}_ms": _number(parts.get(name)) for name in _PARTS})
    row["ms_per_image"] = _ms_per_image(record)
    row["memory_of"] = cost.get("memory_of", "")
    guard = record.get("guard", {})
    row["collapses"], row["rollbacks"] = guard.get("collapses", 0), guard.get("rollbacks", 0)
    row["selector"] = _spec_name(spec["select"]) if record["steps"] else ""
    row["rate"] = _number(_spec_option(spec["optimizer"], "rate"))
    row["visits"] = int(_spec_option(spec["stream"], "visits") or 1)
    row.update({f"spec_{name}": value for name, value in spec.items()})
    row.update({name: provenance.get(name) for name in _PROVENANCE})
    row["machine"] = _made_with(record)
    row["trace"] = str(run.store / record["trace"]) if record.get("trace") else None
    row["store"], row["line"], row["record"] = str(run.store), line, record
    return row


def _number(value: Any) -> float:
    """A number; what is null, absent or none is missing."""
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan


def _as_number(value: Any) -> Any:
    """Axes of a grid are texts, most of them of numbers."""
    number = _number(value)
    return value if math.isnan(number) else number


def _spec_name(text: str) -> str:
    return text.partition(":")[0]


def _spec_option(text: str, name: str) -> str | None:
    found = re.search(rf"[:,]{name}=([^,]*)", text)
    return found.group(1) if found else None


def _mean_accuracy(scores: list[Json]) -> float:
    shares = [score["correct"] / score["images"] for score in scores if score["images"]]
    return sum(shares) / len(shares) if shares else math.nan


def _forgetting_in_norm(record: Json) -> float:
    """Older records have the scores and not the metric."""
    source = record.get("source") or {}
    before, after = source.get("before_in_norm"), source.get("after")
    return _mean_accuracy(before) - _mean_accuracy(after) if before and after else math.nan


def _ms_per_image(record: Json) -> float:
    """The time to answer an image, steps included, loading not."""
    runs = record["over_time"]["images"]
    batches, images = sum(count for _, count in runs), sum(size * count for size, count in runs)
    time = _number(record["cost"].get("batch_ms")) * batches
    return time / images if images and time > 0 else math.nan


def _made_with(record: Json) -> str:
    """What times are compared within: GPU, or CPU and threads, and the conditions."""
    made = record["provenance"]
    text = str(made.get("gpu") or "")
    if not text:
        text = str(made.get("cpu") or "")
        text += f", {made['threads']} threads" if made.get("threads") else ""
    if record["spec"].get("precision", "float32") != "float32":
        text += f", {record['spec']['precision']}"
    return text + (f", {made['jobs']} at once" if (made.get("jobs") or 1) > 1 else "")


def _long(frame: pd.DataFrame, items: Callable[[Json], Iterator[Json]]) -> pd.DataFrame:
    """The items of every record, each with the labels of its run."""
    rows = []
    for labels in frame[["key", *_COLUMNS, "record"]].to_dict("records"):
        record = labels.pop("record")
        rows += [{**labels, **item} for item in items(record)]
    made: pd.DataFrame = _pandas().DataFrame(rows)
    return made


def domains(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each domain (or segment) of each run: `domain`, `images`, `correct`, `error`."""

    def items(record: Json) -> Iterator[Json]:
        visits = int(_spec_option(record["spec"]["stream"], "visits") or 1)
        scores = record["domains"]
        for place, score in enumerate(scores):
            images, correct = score["images"], score["correct"]
            yield {
                "place": place,
                "domain": score["name"],
                "visit": place * visits // len(scores) + 1,
                "images": images,
                "correct": correct,
                "error": 1 - correct / images if images else math.nan,
            }

    return _long(frame, items)


def over_time(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each batch of each run: `batch` (from 0), `segment`, `images`, `correct`, `error`.

    `segment` is the domain, or what the stream calls its part there.
    """

    def items(record: Json) -> Iterator[Json]:
        found = record["over_time"]
        sizes = [size for size, count in found["images"] for _ in range(count)]
        borders = dict(found.get("borders", []))
        segment = ""
        for batch, (images, correct) in enumerate(zip(sizes, found["correct"], strict=True)):
            segment = borders.get(batch, segment)
            yield {
                "batch": batch,
                "segment": segment,
                "images": images,
                "correct": correct,
                "error": 1 - correct / images,
            }

    return _long(frame, items)


def layers(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each layer of each run: `layer`, its `index` in forward order, and what it did."""

    def items(record: Json) -> Iterator[Json]:
        for index, layer in enumerate(record["layers"]):
            rest = {name: value for name, value in layer.items() if name != "name"}
            yield {"index": index, "layer": layer["name"], **rest}

    return _long(frame, items)


def choices(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each stretch of steps with one choice: `begin`, `end`, `layer`, `kind`.

    Steps count from 1; `end` is the first behind the stretch. `kind` is "chosen", or "several",
    "none" or "refused", where `layer` is missing.
    """
    kinds = {-1: "none", -2: "refused", -3: "several"}

    def items(record: Json) -> Iterator[Json]:
        step = 1
        for choice, steps in record["choices"]:
            layer = record["layers"][choice]["name"] if choice >= 0 else None
            kind = kinds.get(choice, "chosen")
            yield {"begin": step, "end": step + steps, "layer": layer, "kind": kind}
            step += steps

    return _long(frame, items)

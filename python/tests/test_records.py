"""load_records and load_trace: frames that say what the lines say; broken lines are told."""

from __future__ import annotations

import csv
import gzip
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import gala_tta
import program_truth
import pytest
from gala_tta import records
from made_records import BATCHES, IMAGES, LAYERS, record, several, write_store

pytest.importorskip("pandas")
RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_a_run_is_a_row(tmp_path: Path) -> None:
    write_store(tmp_path, [record(), record("b" * 32, "Source", "", steps=0, trial=1)])
    frame = gala_tta.load_records(tmp_path)
    assert len(frame) == 2
    run = frame.iloc[0]
    assert (run["method"], run["loss"], run["dataset"], run["trial"]) == (
        "GALA",
        "shot",
        "CIFAR-10-C",
        0,
    )
    assert run["error"] == pytest.approx((4 + 2) / 2 / IMAGES)
    assert math.isnan(run["forgetting"])
    assert math.isnan(run["validation"])
    # Not in the line, but its scores are.
    assert run["forgetting_in_norm"] == pytest.approx(0.93 - 0.90)
    assert run["hyper_rate"] == 0.001
    assert (run["selector"], run["rate"], run["visits"]) == ("gala", 0.001, 1)
    assert frame.iloc[1]["selector"] == ""
    assert run["spec_select"] == "gala:threshold=0.75,window=20"
    assert run["images"] == 2 * BATCHES * IMAGES
    assert run["ms_per_image"] == pytest.approx(10.0 / IMAGES)
    assert run["forward_ms"] == 5.0
    assert math.isnan(run["apply_ms"])
    assert run["collapses"] == 1
    assert run["machine"] == "NVIDIA H200, 2 at once"
    assert str(run["date"]) == "2026-11-16 00:32:42+00:00"
    assert run["record"]["key"] == run["key"]
    assert not frame["superseded"].any()


def test_several_stores_and_files_are_read_together(tmp_path: Path) -> None:
    one = write_store(tmp_path / "one", [record(wrong=2)])
    two = write_store(tmp_path / "two", [record(wrong=8), record("b" * 32)])
    frame = gala_tta.load_records([one, two / "records.jsonl"])
    # A run that both have is that of the first.
    assert list(frame["key"]) == ["a" * 32, "b" * 32]
    assert frame.iloc[0]["error"] == pytest.approx(0.075)
    assert list(frame["store"]) == [str(one), str(two)]
    with pytest.raises(FileNotFoundError, match="three cannot be read"):
        gala_tta.load_records([one, tmp_path / "three"])


def test_the_files_of_several_writers_are_one_store(tmp_path: Path) -> None:
    def made(key: str, date: str, **changes: Any) -> dict[str, Any]:
        line = record(key * 32, **changes)
        return {**line, "provenance": {**line["provenance"], "date": date}}

    def write(name: str, lines: list[dict[str, Any]]) -> None:
        (tmp_path / "records").mkdir(exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / "records" / name).write_text(text)

    write_store(tmp_path, [made("a", "2026-01-01T11:00:00Z", wrong=2)])
    labels = {**record()["labels"], "plan": "other"}
    place = {"schema": 1, "kind": "place", "key": "b" * 32, "labels": labels}
    # Made twice: that which ended first counts. A place may stand before its run, and twice.
    write("1.jsonl", [made("a", "2026-01-01T10:00:00Z", wrong=8), place])
    write("2.jsonl", [made("b", "2026-01-01T10:00:00Z", trial=1), place])
    frame = gala_tta.load_records(tmp_path)
    assert list(frame["key"].str[0]) == ["a", "b"]
    assert frame.iloc[0]["error"] == pytest.approx(0.3)
    assert list(frame["store"]) == [str(tmp_path)] * 2
    assert list(gala_tta.load_records(tmp_path, places=True)["plan"]) == ["test", "test", "other"]


def test_places_are_rows_where_they_are_asked_for(tmp_path: Path) -> None:
    labels = {**record()["labels"], "plan": "other", "row": "Window 20"}
    place = {"schema": 1, "kind": "place", "key": "a" * 32, "labels": labels}
    write_store(tmp_path, [record(), place, record("b" * 32, trial=1)])
    assert list(gala_tta.load_records(tmp_path)["plan"]) == ["test", "test"]
    frame = gala_tta.load_records(tmp_path, places=True)
    assert list(frame["plan"]) == ["test", "other", "test"]
    assert list(frame["key"].str[0]) == ["a", "a", "b"]
    assert list(frame["method"]) == ["GALA", "Window 20", "GALA"]


def test_the_later_line_has_a_place_that_two_claim(tmp_path: Path) -> None:
    write_store(tmp_path, [record(), record("b" * 32)])
    assert list(gala_tta.load_records(tmp_path)["superseded"]) == [True, False]
    # A place that the first run is given later takes it back.
    place = {"schema": 1, "kind": "place", "key": "a" * 32, "labels": record()["labels"]}
    write_store(tmp_path, [record(), record("b" * 32), place])
    frame = gala_tta.load_records(tmp_path, places=True).set_index("line")
    assert not frame.loc[3, "superseded"]
    assert frame.loc[[1, 2], "superseded"].all()


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_last_line_that_is_not_whole_is_left_out(tmp_path: Path, end: str) -> None:
    torn = json.dumps(record("b" * 32))[:200]
    write_store(tmp_path, [record(), torn], end=end)
    with pytest.warns(UserWarning, match="line 2 is not whole.*left out"):
        frame = gala_tta.load_records(tmp_path)
    assert list(frame["key"]) == ["a" * 32]
    # Even a whole one counts only with its newline.
    write_store(tmp_path, [record(), record("b" * 32)], end="")
    with pytest.warns(UserWarning, match="line 2 is not whole"):
        assert len(gala_tta.load_records(tmp_path)) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"schema": 1, "kind"', "is not JSON"),
        ("\x00\x00", "is not JSON"),
        ("[1, 2]", "is not a record"),
        ('{"kind": "run"}', "has no schema"),
        ({**record("c" * 32), "schema": 2}, "is of schema 2, this package reads up to 1"),
        ({"schema": 1, "kind": "walk", "key": "x", "labels": {}}, 'unknown kind "walk"'),
        ({"schema": 1, "kind": "place", "key": "x", "labels": {}}, "a run that is not there"),
        (record(), "has the key a{32} of an earlier one"),
        ({**record("c" * 32), "over_time": 3}, "is not a record"),
        ({**record("c" * 32), "spec": {}}, "is not a record"),
    ],
)
def test_a_broken_line_is_refused_or_left_out(tmp_path: Path, line: object, words: str) -> None:
    write_store(tmp_path, [record(), line, record("b" * 32)])
    with pytest.raises(ValueError, match=f"records.jsonl: line 2 .*{words}"):
        gala_tta.load_records(tmp_path)
    with pytest.warns(UserWarning, match=f"line 2 .*{words}"):
        frame = gala_tta.load_records(tmp_path, errors="warn")
    assert list(frame["key"].str[0]) == ["a", "b"]
    with pytest.raises(ValueError, match="errors cannot be"):
        gala_tta.load_records(tmp_path, errors="ignore")  # type: ignore[arg-type]


def test_an_empty_store_is_an_empty_frame(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text("")
    frame = gala_tta.load_records(tmp_path)
    assert len(frame) == 0
    assert list(frame.query("method == 'GALA'")["error"]) == []


def test_longer_frames_have_what_a_run_holds(tmp_path: Path) -> None:
    frame = gala_tta.load_records(write_store(tmp_path, [record(wrong=4, visits=2)]))
    domains = records.domains(frame)
    assert list(domains["domain"]) == [
        "fog (visit 1)",
        "snow (visit 1)",
        "fog (visit 2)",
        "snow (visit 2)",
    ]
    assert list(domains["visit"]) == [1, 1, 2, 2]
    assert domains["error"].tolist() == pytest.approx([0.2, 0.1] * 2)
    assert set(domains["method"]) == {"GALA"}
    batches = records.over_time(frame)
    assert len(batches) == 4 * BATCHES
    assert batches.loc[BATCHES, ["batch", "segment", "correct"]].tolist() == [
        BATCHES,
        "snow (visit 1)",
        18,
    ]
    layers = records.layers(frame)
    assert layers["layer"].tolist() == list(LAYERS)
    assert layers["chosen"].tolist() == [0, 1, 2, 3]
    choices = records.choices(frame)
    assert choices["kind"].tolist() == ["several", "chosen", "none", "refused", "chosen"]
    assert choices["begin"].tolist() == [1, 2, 6, 7, 8]
    assert choices["end"].tolist() == [2, 6, 7, 8, 13]
    assert choices.loc[[1, 4], "layer"].tolist() == ["block1.conv", "conv1"]


def test_a_trace_of_a_store_is_read(tmp_path: Path) -> None:
    head = {"schema": 1, "key": "a" * 32, "layers": ["conv1", "fc"], "every": 1}
    steps = [
        {"step": 1, "window_step": 1, "loss": 0.5, "confident": 3, "distance": [0, 0]},
        {"step": 2, "window_step": 2, "loss": None, "confident": 3, "distance": []},
        {"step": 3, "window_step": 3, "loss": 0.3, "confident": 3, "distance": [0.25, None]},
    ]
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, [head, *steps])).encode()))
    trace = gala_tta.load_trace(path)
    assert trace["step"].tolist() == [1, 1, 3, 3]
    assert trace["layer"].tolist() == ["conv1", "fc"] * 2
    assert trace["cosine"].tolist()[:3] == [1, 1, 0.75]
    assert math.isnan(trace["cosine"].iloc[3])
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match="is not a trace"):
        gala_tta.load_trace(path)
    path.write_text(json.dumps({**head, "schema": 9}))
    with pytest.raises(ValueError, match="is of schema 9"):
        gala_tta.load_trace(path)


def test_a_trace_of_adapt_is_read(tmp_path: Path) -> None:
    def step(number: int, chosen: str) -> str:
        layers = [
            {
                "name": name,
                "cosine": 0.5,
                "update_norm": 0.1,
                "shift_norm": 0.2,
                "weight": float(name == chosen),
            }
            for name in ("conv1", "fc")
        ]
        line = {
            "step": number,
            "window_step": number,
            "batch": number,
            "loss": 0.1,
            "gradient_norm": 1.0,
            "layers": layers,
            "selected": [chosen],
            "gap": 0.0,
            "correct": 5,
            "images": 10,
        }
        return json.dumps(line)

    path = tmp_path / "steps.jsonl"
    path.write_text(step(1, "fc") + "\n" + step(2, "conv1") + "\n" + step(3, "fc")[:50])
    with pytest.warns(UserWarning, match="line 3 was cut off"):
        trace = gala_tta.load_trace(path)
    assert trace["selected"].tolist() == [False, True, True, False]
    assert trace["weight"].tolist() == [0, 1, 1, 0]
    assert trace["correct"].tolist() == [5] * 4
    path.write_text("nonsense\n" + step(1, "fc"))
    with pytest.raises(ValueError, match="line 1 is not a step of a trace"):
        gala_tta.load_trace(path)
    path.write_text("")
    with pytest.raises(ValueError, match="holds no step"):
        gala_tta.load_trace(path)


def test_pandas_is_asked_for_when_it_is_needed(tmp_path: Path) -> None:
    write_store(tmp_path, several())
    code = (
        "import sys; sys.modules['pandas'] = None; sys.modules['altair'] = None\n"
        "import gala_tta; from gala_tta import plots\n"
        f"gala_tta.load_records({str(tmp_path)!r})"
    )
    ending = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "ImportError: records are read into pandas frames: pip install pandas" in ending.stderr


@pytest.mark.skipif(not (RESULTS / "records.jsonl").is_file(), reason="not in a checkout")
def test_the_committed_records_say_the_same_in_scores_and_metrics() -> None:
    frame = gala_tta.load_records(RESULTS)
    errors = records.domains(frame).groupby("key")["error"].mean()
    assert len(errors) == len(frame) > 1000
    given = frame.set_index("key")["error"]
    assert (errors - given).abs().max() < 1e-12
    over_time = records.over_time(frame).groupby("key")["correct"].sum()
    assert (over_time == records.domains(frame).groupby("key")["correct"].sum()).all()
    for path in frame["trace"].dropna():
        trace = gala_tta.load_trace(path)
        assert trace["cosine"].between(-1, 1).all()


@pytest.mark.skipif(not program_truth.program(), reason="GALA_PROGRAM is not set")
def test_means_are_those_of_the_report(tmp_path: Path) -> None:
    out = tmp_path / "report.csv"
    words = [str(program_truth.program()), "report", str(RESULTS), "--format", "csv"]
    subprocess.run([*words, "--out", str(out)], capture_output=True, check=True)
    frame = gala_tta.load_records(RESULTS).set_index("key")
    columns = {
        "Error": ("error", 100),
        "Forget.": ("forgetting", 100),
        "Forget., same norm": ("forgetting_in_norm", 100),
        "ms per image": ("ms_per_image", 1),
        "Memory, GB": ("peak_memory", 1e-9),
    }
    compared = 0
    with out.open() as lines:
        for row in csv.DictReader(lines):
            if row["table"] != "plan-methods" or row["state"] != "value":
                continue
            column, scale = columns[row["column"]]
            mean = frame.loc[row["runs"].split(), column].mean() * scale
            # Without a norm of its own the forgetting is the same in both.
            if not math.isnan(mean):
                assert mean == pytest.approx(float(row["value"]), rel=1e-9, abs=1e-9)
                compared += 1
    assert compared > 50

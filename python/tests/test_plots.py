"""Figures: valid Vega-Lite, over the numbers of the runs, in the right order."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import gala_tta
import pytest
from gala_tta import plots
from made_records import record, several, write_store

pytest.importorskip("pandas")
altair = pytest.importorskip("altair")


@pytest.fixture
def runs(tmp_path: Path) -> Any:
    return gala_tta.load_records(write_store(tmp_path, several()))


@pytest.fixture
def trace() -> Any:
    import pandas

    return pandas.DataFrame(
        [
            {
                "step": step,
                "window_step": step,
                "layer": layer,
                "index": index,
                "loss": 0.1,
                "distance": distance,
                "cosine": 1 - distance,
                "selected": (step == 2 and layer == "fc") or step == 4,
            }
            for step in (1, 2, 4, 5)
            for index, (layer, distance) in enumerate(
                [("conv1", 0.1 * (step > 1)), ("bn", 0.01 * (step > 1)), ("fc", 0.001 * (step > 1))]
            )
        ]
    )


def spec_of(chart: Any) -> dict[str, Any]:
    """The specification, each layer with its rows; to_dict checks it against Vega-Lite's schema."""
    spec: dict[str, Any] = chart.to_dict(validate=True)
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    shared = spec.get("data")
    for layer in [spec, *spec.get("layer", [])]:
        data = layer.get("data", shared)
        if data is not None:
            layer["data"] = {"values": spec["datasets"][data["name"]]}
    return spec


def rows_of(layer: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = layer["data"]["values"]
    return rows


def test_the_leaderboard_is_sorted_and_means_trials(runs: Any) -> None:
    spec = spec_of(plots.leaderboard(runs, title="A board"))
    assert spec["title"] == "A board"
    bars = spec["layer"][0]
    order = bars["encoding"]["y"]["sort"]
    assert order == ["GALA", "Tent", "Batch statistics", "Source", "All layers"]
    rows = {row["line"]: row for row in rows_of(bars)}
    # Wrong on 4 and 2 of 20 pictures in one trial, on 5 and 2 in the other.
    assert rows["GALA"]["error"] == pytest.approx(100 * (6 + 7) / 2 / 40)
    assert rows["GALA"]["runs"] == 2
    assert rows["GALA"]["spread"] == pytest.approx(100 * (1 / 40) / 2**0.5)
    assert {line for line, row in rows.items() if row["kind"] == "does nothing"} == {
        "Source",
        "Batch statistics",
    }
    assert rows["GALA"]["kind"] == "best"
    assert bars["encoding"]["x"]["title"] == "error in %"


def test_the_line_of_costs_goes_through_what_none_beats(runs: Any) -> None:
    spec = spec_of(plots.error_against_cost(runs))
    rows = rows_of(spec["layer"][0])
    assert [row["line"] for row in rows if row["frontier"]] == [
        "Source",
        "Batch statistics",
        "Tent",
        "GALA",
    ]
    assert [row["cost"] for row in rows] == pytest.approx([0.05, 0.075, 0.2, 0.25, 0.3])
    # No two names touch: a line of text is 14 pixels.
    scale = spec["layer"][0]["encoding"]["y"]["scale"]
    low, high = map(math.log, scale["domain"])
    pixels = sorted(
        spec["height"] * (math.log(row["name_at"]) - low) / (high - low) for row in rows
    )
    assert scale["type"] == "log"
    assert min(b - a for a, b in itertools.pairwise(pixels)) >= 13.999
    memory = spec_of(plots.error_against_cost(runs, cost="peak_memory"))
    assert memory["layer"][0]["encoding"]["x"]["title"] == "peak memory in GB"
    assert rows_of(memory["layer"][0])[0]["cost"] == 2


def test_times_of_different_machines_are_not_compared(tmp_path: Path) -> None:
    store = write_store(tmp_path, [record(), record("b" * 32, "Tent", gpu="NVIDIA T4")])
    with pytest.raises(ValueError, match=r"2 different values of machine .*NVIDIA T4.*choose one"):
        plots.error_against_cost(gala_tta.load_records(store))


def test_the_map_boxes_the_best_and_colours_by_gain(runs: Any) -> None:
    spec = spec_of(plots.selector_map(runs, rows="loss", columns="selector"))
    rows = {(row["loss"], row["selector"]): row for row in rows_of(spec["layer"][0])}
    assert set(rows) == {("shot", "gala"), ("entropy", "norm_affine"), ("entropy", "all")}
    assert rows["entropy", "norm_affine"]["best"]
    assert not rows["entropy", "all"]["best"]
    # Against the idle runs: errors of 12, 13 and 8, 9 of 20, half of it in the second domain.
    idle = 100 * (18 + 19 + 12 + 13) / 4 / 40
    row = rows["shot", "gala"]
    assert row["gain"] == pytest.approx(idle - row["error"])
    title = spec["layer"][0]["encoding"]["color"]["title"]
    assert title == f"points better than doing nothing, {idle:.1f} %"
    alone = spec_of(plots.selector_map(runs[runs["steps"] > 0]))
    assert "the median" in alone["layer"][0]["encoding"]["color"]["title"]


def test_the_error_over_a_stream_keeps_to_its_borders(runs: Any) -> None:
    spec = spec_of(plots.error_over_stream(runs, every=4))
    rules, names, main = spec["layer"]
    assert [row["start"] for row in rows_of(rules)] == [6]
    assert [row["name"] for row in rows_of(names)] == ["fog", "snow"]
    rows = [row for row in rows_of(main) if row["line"] == "GALA"]
    # Six batches a domain, in points of four and two.
    assert [row["batch"] for row in rows] == [2, 5, 8, 11]
    assert [row["error"] for row in rows] == pytest.approx([22.5, 22.5, 10, 10])
    colours = main["encoding"]["color"]["scale"]
    assert colours["domain"][0] == "GALA"
    pairs = list(
        zip(
            colours["range"],
            map(str, main["encoding"]["strokeDash"]["scale"]["range"]),
            strict=True,
        )
    )
    assert len(set(pairs)) == len(pairs)


def test_streams_that_differ_are_not_drawn_together(tmp_path: Path) -> None:
    other = record("b" * 32)
    other["over_time"]["borders"][0][1] = "rain"
    frame = gala_tta.load_records(write_store(tmp_path, [record(), other]), places=True)
    frame["superseded"] = False
    with pytest.raises(ValueError, match="2 different streams: choose one"):
        plots.error_over_stream(frame)


def test_visits_are_drawn_of_streams_that_recur(tmp_path: Path) -> None:
    frame = gala_tta.load_records(write_store(tmp_path, [record(visits=3)]))
    spec = spec_of(plots.error_over_visits(frame))
    assert [(row["visit"], row["error"]) for row in rows_of(spec)] == [
        (visit, pytest.approx(15)) for visit in (1, 2, 3)
    ]
    stream = spec_of(plots.error_over_stream(frame))
    assert [row["name"] for row in rows_of(stream["layer"][1])] == ["visit 1", "visit 2", "visit 3"]


def test_the_selection_of_a_run_and_of_a_trace_is_drawn(runs: Any, trace: Any) -> None:
    spec = spec_of(plots.selection(runs[runs["key"] == "02" * 16]))
    _, bands, chosen = spec["layer"]
    assert [row["kind"] for row in rows_of(bands)] == ["several", "none", "refused"]
    assert [(row["begin"], row["end"], row["layer"]) for row in rows_of(chosen)] == [
        (2, 6, "block1.conv"),
        (8, 13, "conv1"),
    ]
    _, bands, chosen = spec_of(plots.selection(trace))["layer"]
    assert [(row["begin"], row["layer"]) for row in rows_of(chosen)] == [(2, "fc")]
    # Step 3 is not in the trace: it was refused.
    assert [(row["begin"], row["kind"]) for row in rows_of(bands)] == [
        (1, "none"),
        (3, "refused"),
        (4, "several"),
        (5, "none"),
    ]
    with pytest.raises(ValueError, match="one run can be drawn, 10 are given"):
        plots.selection(runs)
    counts = spec_of(plots.layer_counts(runs[runs["key"] == "02" * 16]))
    assert [row["chosen"] for row in rows_of(counts)] == [0, 1, 2, 3]


def test_cosines_are_drawn_with_their_threshold(trace: Any) -> None:
    spec = spec_of(plots.cosines(trace, threshold=0.75))
    rows = rows_of(spec["layer"][0])
    # The first step opens a window: nothing has moved.
    assert [row["step"] for row in rows] == [2, 4, 5]
    assert [rows[0][name] for name in ("best", "median", "worst")] == pytest.approx(
        [0.001, 0.01, 0.1]
    )
    assert rows_of(spec["layer"][2])[0]["distance"] == 0.25
    cells = rows_of(spec_of(plots.cosine_map(trace)))
    assert len(cells) == 12
    assert max(cell["end"] for cell in cells) == 6
    with pytest.raises(ValueError, match="every cosine is 1"):
        plots.cosines(trace[trace["step"] == 1])


def test_nothing_to_draw_is_said(runs: Any) -> None:
    empty = runs.iloc[:0]
    for figure in (plots.leaderboard, plots.error_over_stream, plots.selection, plots.selector_map):
        with pytest.raises(ValueError, match="there is no run to draw"):
            figure(empty)
    with pytest.raises(ValueError, match="no run that adapts"):
        plots.selector_map(runs[runs["steps"] == 0])
    with pytest.raises(ValueError, match="2 different values of dataset"):
        plots.leaderboard(runs.assign(dataset=["A"] * 5 + ["B"] * 5))


def test_what_a_later_line_replaced_is_not_drawn(tmp_path: Path) -> None:
    frame = gala_tta.load_records(
        write_store(tmp_path, [record(wrong=10), record("b" * 32, wrong=2)])
    )
    (row,) = rows_of(spec_of(plots.leaderboard(frame))["layer"][0])
    assert row["error"] == pytest.approx(7.5)


def test_every_figure_can_be_rendered(runs: Any, trace: Any) -> None:
    renderer = pytest.importorskip("vl_convert")
    one = runs[runs["key"] == "02" * 16]
    for chart in (
        plots.leaderboard(runs),
        plots.error_against_cost(runs),
        plots.selector_map(runs, rows="loss"),
        plots.error_over_stream(runs),
        plots.selection(one),
        plots.layer_counts(one),
        plots.cosines(trace, threshold=0.75),
        plots.cosine_map(trace),
    ):
        svg = renderer.vegalite_to_svg(chart.to_dict())
        assert svg.startswith("<svg")
        assert "NaN" not in svg

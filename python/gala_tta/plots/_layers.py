"""Figures of layers: which moved when and how often, and the cosines that chose them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gala_tta import records
from gala_tta.plots._theme import MAIN, SOFT, altair, chart, finish, some

if TYPE_CHECKING:
    import pandas as pd

#: What a logarithmic axis shows in place of 0.
_SMALLEST = 1e-12
_MOST_STEPS = 800
_MOST_CELLS = 5000
_KINDS = {
    "chosen": "#0072B2",
    "several": "#E69F00",
    "none": "#c3c7cd",
    "refused": "#D55E00",
}


def _one_run(runs: pd.DataFrame) -> pd.DataFrame:
    runs = some(runs)
    if runs["key"].nunique() != 1:
        raise ValueError(f"one run can be drawn, {runs['key'].nunique()} are given: choose one")
    one: pd.DataFrame = runs.head(1)
    return one


def _layer_axis(alt: Any, names: list[str]) -> Any:
    return alt.Y(
        "layer:N",
        sort=names,
        scale=alt.Scale(domain=names),
        title="layer, input to output",
        axis=alt.Axis(labelFontSize=9, labelLimit=150, grid=False, ticks=False),
    )


def _rows_high(names: list[str]) -> int:
    return max(120, min(13, max(6, 700 // max(1, len(names)))) * len(names))


def _step_axis(alt: Any, field: str, last: float) -> Any:
    return alt.X(
        f"{field}:Q",
        title="step",
        scale=alt.Scale(domain=[1, last], nice=False),
        axis=alt.Axis(grid=False, tickMinStep=1),
    )


def selection(run: pd.DataFrame, *, title: str | None = None, width: int = 760) -> Any:
    """Which layer moved at which step.

    Parameters
    ----------
    run
        One row of `load_records`, or a trace of `gala adapt` that `load_trace` read.
    """
    alt = altair()
    pandas = records._pandas()
    if "selected" in run:
        names, stretches = _from_trace(run)
    else:
        run = _one_run(run)
        names = list(records.layers(run)["layer"])
        stretches = records.choices(run)[["begin", "end", "layer", "kind"]]
    if not len(stretches):
        raise ValueError("the run made no steps")
    last = int(stretches["end"].max())
    x, x2 = _step_axis(alt, "begin", last), alt.X2("end:Q")
    present = [kind for kind in _KINDS if kind in set(stretches["kind"])]
    words = {
        "chosen": "one layer",
        "several": "several layers",
        "none": "no layer",
        "refused": "refused",
    }
    stretches = stretches.assign(what=stretches["kind"].map(words))
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(
            domain=[words[kind] for kind in present], range=[_KINDS[kind] for kind in present]
        ),
        legend=alt.Legend(title=None, orient="top", symbolType="square", symbolOpacity=1),
    )
    tooltip = [
        alt.Tooltip("layer:N"),
        alt.Tooltip("what:N", title="moved"),
        alt.Tooltip("begin:Q", title="from step"),
    ]
    bands = (
        chart(stretches[stretches["kind"] != "chosen"].drop(columns="layer"))
        .mark_rect(opacity=0.45)
        .encode(x=x, x2=x2, color=colour, tooltip=tooltip[1:])
    )
    # Every layer has its line, moved or not.
    lines = (
        chart(pandas.DataFrame({"layer": names}))
        .mark_rule(color="#eef0f2", strokeWidth=1)
        .encode(y=_layer_axis(alt, names))
    )
    chosen = (
        chart(stretches[stretches["kind"] == "chosen"])
        .mark_rect(minBandSize=3)
        .encode(x=x, x2=x2, y=_layer_axis(alt, names), color=colour, tooltip=tooltip)
    )
    return finish(alt.layer(lines, bands, chosen), title, width, _rows_high(names))


def _from_trace(trace: pd.DataFrame) -> tuple[list[str], pd.DataFrame]:
    pandas = records._pandas()
    names = list(trace.sort_values("index")["layer"].drop_duplicates())
    rows = []
    # A step that was refused has no rows: it is what is missing between the others.
    moved: dict[int, list[str]] = {int(step): [] for step in trace["step"].unique()}
    for step, layer in trace.loc[trace["selected"], ["step", "layer"]].to_numpy():
        moved[int(step)].append(str(layer))
    for step in range(min(moved), max(moved) + 1):
        layers = moved.get(step)
        kind = "refused" if layers is None else "none" if not layers else "several"
        one = layers[0] if layers and len(layers) == 1 else None
        rows.append(
            {"begin": step, "end": step + 1, "layer": one, "kind": "chosen" if one else kind}
        )
    return names, pandas.DataFrame(rows)


def layer_counts(run: pd.DataFrame, *, title: str | None = None, width: int = 420) -> Any:
    """How often each layer moved by its whole update, in one run; colours are the blocks."""
    alt = altair()
    table = records.layers(_one_run(run))
    if not len(table):
        raise ValueError("the run has no layers")
    table["part"] = ["head" if block == 0 else f"block {block}" for block in table["block"]]
    names = list(table["layer"])
    bars = (
        chart(table[["layer", "chosen", "part", "weight", "parameters"]])
        .mark_bar()
        .encode(
            y=_layer_axis(alt, names),
            x=alt.X("chosen:Q", title="steps", axis=alt.Axis(tickMinStep=1)),
            color=alt.Color(
                "part:N",
                sort=list(dict.fromkeys(table["part"])),
                scale=alt.Scale(
                    range=["#56B4E9", "#0072B2", "#009E73", "#E69F00", "#D55E00", "#CC79A7"]
                ),
                legend=alt.Legend(title=None, symbolType="square"),
            ),
            tooltip=["layer:N", "chosen:Q", "weight:Q", "parameters:Q"],
        )
    )
    return finish(bars, title, width, _rows_high(names))


def cosines(
    trace: pd.DataFrame,
    *,
    threshold: float | None = None,
    title: str | None = None,
    width: int = 760,
) -> Any:
    """1 - cos α over the steps: the best layer, the median, and all layers as a band.

    Parameters
    ----------
    trace
        What `load_trace` read.
    threshold
        The cosine above which a layer may move, drawn as a line.
    """
    alt = altair()
    if "distance" not in trace:
        raise ValueError("cosines are drawn of a trace, as load_trace reads it")
    table = trace.dropna(subset=["distance"]).groupby("step", as_index=False)["distance"]
    table = table.agg(best="min", median="median", worst="max")
    # Where a window opens every cosine is 1, and there is nothing to show.
    table = table[table["worst"] > _SMALLEST].clip(lower=_SMALLEST)
    if not len(table):
        raise ValueError("no layer of the trace has gone anywhere: every cosine is 1")
    table = table.iloc[:: max(1, -(-len(table) // _MOST_STEPS))]

    def y(field: str) -> Any:
        return alt.Y(
            f"{field}:Q",
            title="1 − cos α (up is better)",
            scale=alt.Scale(type="log", reverse=True, nice=False),
            axis=alt.Axis(format="~e", tickCount=5, grid=False, labelOverlap=True),
        )

    x = alt.X(
        "step:Q", title="step", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(grid=False)
    )
    base = chart(table)
    lines = base.transform_fold(["best", "median"], as_=["which", "distance"]).mark_line().encode(
        x=x,
        y=y("distance"),
        color=alt.Color(
            "which:N",
            scale=alt.Scale(
                domain=["best", "median", "all"], range=[MAIN, SOFT, "#c9dff0"]
            ),
            legend=alt.Legend(
                title=None,
                orient="top",
                symbolType="stroke",
                symbolStrokeWidth=3,
                labelExpr="{best: 'best layer', median: 'median', all: 'all layers'}[datum.label]",
            ),
        ),
        strokeWidth=alt.condition("datum.which == 'best'", alt.value(1.6), alt.value(1)),
    )  # fmt: skip
    layers = [base.mark_area(color="#c9dff0", opacity=0.8).encode(x=x, y=y("best"), y2="worst:Q")]
    layers.append(lines)
    if threshold is not None:
        rule = chart(
            records._pandas().DataFrame(
                [{"distance": 1 - threshold, "text": f"threshold {threshold:g}"}]
            )
        )
        layers.append(rule.mark_rule(color="#D55E00", strokeDash=[5, 3]).encode(y=y("distance")))
        layers.append(
            rule.mark_text(color="#D55E00", align="right", baseline="bottom", dy=-4).encode(
                y=y("distance"), x=alt.value("width"), text="text:N"
            )
        )
    return finish(alt.layer(*layers), title, width, height=260)


def cosine_map(trace: pd.DataFrame, *, title: str | None = None, width: int = 760) -> Any:
    """The cosine of every layer over the steps, as a map."""
    alt = altair()
    names = list(trace.sort_values("index")["layer"].drop_duplicates())
    steps = sorted(trace["step"].unique())
    every = max(1, -(-len(steps) * len(names) // _MOST_CELLS))
    edges = [int(step) for step in steps[::every]] + [int(steps[-1]) + 1]
    number = {int(step): place // every for place, step in enumerate(steps)}
    table = trace.assign(stretch=trace["step"].map(number))
    table = table.groupby(["stretch", "layer"], as_index=False)["cosine"].mean()
    table["begin"] = [edges[place] for place in table["stretch"]]
    table["end"] = [edges[place + 1] for place in table["stretch"]]
    cells = (
        chart(table[["layer", "begin", "end", "cosine"]])
        .mark_rect()
        .encode(
            x=_step_axis(alt, "begin", edges[-1]),
            x2="end:Q",
            y=_layer_axis(alt, names),
            color=alt.Color(
                "cosine:Q",
                title="cos α",
                scale=alt.Scale(scheme="yellowgreenblue", reverse=True),
                legend=alt.Legend(gradientLength=160),
            ),
            tooltip=["layer:N", "begin:Q", alt.Tooltip("cosine:Q", format=".4f")],
        )
    )
    return finish(cells, title, width, _rows_high(names))

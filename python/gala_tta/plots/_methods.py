"""Figures that compare methods: who errs least, what it costs, which layers they should move."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gala_tta.plots._names import ErrorAxis, place_names
from gala_tta.plots._theme import (
    IDLE,
    INK,
    MAIN,
    SOFT,
    altair,
    chart,
    finish,
    one_of,
    some,
    with_lines,
)

if TYPE_CHECKING:
    import pandas as pd


def leaderboard(runs: pd.DataFrame, *, title: str | None = None, width: int = 460) -> Any:
    """Methods by their mean error, the best first; whiskers are the deviation over runs.

    Parameters
    ----------
    runs
        Rows of `load_records` of one data set and network.
    """
    alt = altair()
    runs = with_lines(runs)
    one_of(runs, "dataset", "backbone")
    table = runs.groupby(["line", "idle"], as_index=False).agg(
        error=("error", "mean"), spread=("error", "std"), runs=("error", "size")
    )
    table["error"] *= 100
    table["spread"] = table["spread"].fillna(0) * 100
    table["low"], table["high"] = table["error"] - table["spread"], table["error"] + table["spread"]
    table["text"] = [f"{value:.1f}" for value in table["error"]]
    table["kind"] = ["does nothing" if idle else "adapts" for idle in table["idle"]]
    table = table.sort_values("error")
    order = list(table["line"])
    table.loc[table["error"] == table["error"].min(), "kind"] = "best"
    kinds = [kind for kind in ("best", "adapts", "does nothing") if kind in set(table["kind"])]
    colours = {"best": "#005a8f", "adapts": "#7fb3d5", "does nothing": "#c3c7cd"}
    y = alt.Y("line:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, ticks=False))
    x = alt.X(
        "error:Q",
        title="error in %",
        scale=alt.Scale(domain=[0, float(table["high"].max()) * 1.1], nice=False),
    )
    base = chart(table)
    bars = base.mark_bar(height={"band": 0.72}, cornerRadiusEnd=2).encode(
        x=x,
        y=y,
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds]),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
        tooltip=[
            alt.Tooltip("line:N", title="method"),
            alt.Tooltip("error:Q", title="error in %", format=".2f"),
            alt.Tooltip("spread:Q", title="deviation", format=".2f"),
            "runs:Q",
        ],
    )
    layers = [bars]
    if (table["spread"] > 0).any():
        layers.append(
            base.transform_filter("datum.spread > 0")
            .mark_rule(color=INK, strokeWidth=1.2)
            .encode(x=alt.X("low:Q", title="error in %"), x2="high:Q", y=y)
        )
    layers.append(
        base.mark_text(align="left", dx=5, color=INK, fontSize=11).encode(
            x=alt.X("high:Q", title="error in %"), y=y, text="text:N"
        )
    )
    return finish(alt.layer(*layers), title, width, height=max(60, 24 * len(order)))


def error_against_cost(
    runs: pd.DataFrame, *, cost: str = "ms_per_image", title: str | None = None, width: int = 460
) -> Any:
    """The error of methods against what they cost; on the line, those that none beats in both.

    Parameters
    ----------
    runs
        Rows of `load_records` of one data set and network. Those of one machine: times of others do
        not compare.
    cost
        "ms_per_image", or another column of costs, such as "peak_memory" (then in GB).
    """
    alt = altair()
    titles = {
        "ms_per_image": "ms per image, steps included",
        "peak_memory": "peak memory in GB",
        "step_ms": "ms per step",
    }
    runs = with_lines(runs)
    one_of(runs, "dataset", "backbone", "machine")
    table = runs.groupby(["line", "idle"], as_index=False).agg(
        error=("error", "mean"), cost=(cost, "mean")
    )
    table["error"] *= 100
    if cost == "peak_memory":
        table["cost"] /= 1e9
    table = table[(table["cost"] > 0) & table["error"].notna()].sort_values(["cost", "error"])
    if not len(table):
        raise ValueError(f"the runs have no {cost}")
    # Ties in favour of the first.
    before = table["error"].cummin().shift(fill_value=math.inf)
    table["frontier"] = table["error"] < before
    table["name"] = [
        f"{line} {error:.1f}" for line, error in zip(table["line"], table["error"], strict=True)
    ]
    height = max(280, 20 * len(table))
    axis = ErrorAxis(list(table["error"]), height)
    table["name_at"] = place_names(list(table["error"]), axis)

    def y(field: str) -> Any:
        return alt.Y(
            f"{field}:Q",
            title="error in %",
            scale=alt.Scale(
                type="log" if axis.logarithmic else "linear",
                domain=[axis.low, axis.high],
                nice=False,
            ),
            axis=alt.Axis(format="~g", grid=False, tickCount=6, labelOverlap=True),
        )

    x = alt.X(
        "cost:Q",
        title=titles.get(cost, cost),
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(format="~g", grid=False, tickCount=6, labelOverlap=True),
    )
    base = chart(table)
    tooltip = [
        alt.Tooltip("line:N", title="method"),
        alt.Tooltip("error:Q", title="error in %", format=".2f"),
        alt.Tooltip("cost:Q", title=titles.get(cost, cost), format=".3g"),
    ]
    leaders = base.mark_rule(color=SOFT, strokeWidth=0.6, opacity=0.6).encode(
        x=x, x2=alt.value("width"), y=y("error"), y2="name_at:Q"
    )
    line = (
        base.transform_filter("datum.frontier")
        .mark_line(color=MAIN, strokeWidth=1.8, interpolate="step-after")
        .encode(x=x, y=y("error"))
    )
    # Those on the line lie above others.
    points = [
        base.transform_filter(which)
        .mark_point(
            filled=True, opacity=1, stroke="white", strokeWidth=0.8, color=colour, size=size
        )
        .encode(x=x, y=y("error"), tooltip=tooltip)
        for which, colour, size in (("!datum.frontier", IDLE, 60), ("datum.frontier", MAIN, 95))
    ]
    names = base.mark_text(align="left", baseline="middle", dx=5, fontSize=11).encode(
        x=alt.value("width"),
        y=y("name_at"),
        text="name:N",
        color=alt.condition("datum.frontier", alt.value(MAIN), alt.value(INK)),
    )
    return finish(alt.layer(leaders, line, *points, names), title, width, height)


def selector_map(
    runs: pd.DataFrame,
    *,
    rows: str = "method",
    columns: str = "selector",
    title: str | None = None,
    width: int = 0,
) -> Any:
    """A heat map: methods down, the layers that they move across.

    The number is the mean error in %, the colour how many points it is better (blue) or worse
    (orange) than doing nothing; the best of each row is boxed. Colours end at 10 points.

    Parameters
    ----------
    runs
        Rows of `load_records` of one data set and network. Those in which nothing adapts are what
        the colours are measured against; without any, the median of the others is.
    rows, columns
        What stands down and across: any columns of the frame.
    """
    alt = altair()
    runs = some(runs)
    one_of(runs, "dataset", "backbone")
    acts = runs[runs["steps"] > 0]
    if not len(acts):
        raise ValueError("there is no run that adapts")
    idle = _idle_error(runs, acts)
    table = acts.groupby([rows, columns], as_index=False)["error"].mean()
    table["error"] *= 100
    middle = float(table["error"].median()) if idle is None else 100 * idle
    table["gain"] = middle - table["error"]
    table["text"] = [f"{value:.1f}" for value in table["error"]]
    table["best"] = table["error"] == table.groupby(rows)["error"].transform("min")
    limit = min(10.0, max(1.0, float(table["gain"].abs().max())))
    # White on what is dark.
    table["dark"] = table["gain"].abs() > 0.7 * limit
    order = list(table.groupby(rows)["error"].min().sort_values().index)
    across = list(table.groupby(columns)["error"].mean().sort_values().index)
    base = chart(table).encode(
        x=alt.X(
            f"{columns}:N",
            sort=across,
            title=None,
            axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False, labelLimit=140),
        ),
        y=alt.Y(
            f"{rows}:N",
            sort=order,
            title=None,
            axis=alt.Axis(domain=False, ticks=False, labelLimit=220, labelPadding=8),
        ),
    )
    named = "the median" if idle is None else "doing nothing"
    cells = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color(
            "gain:Q",
            title=f"points better than {named}, {middle:.1f} %",
            scale=alt.Scale(
                domain=[-limit, -limit / 2, 0, limit / 2, limit],
                range=["#b35806", "#f1a340", "#f7f7f7", "#92c5de", "#2166ac"],
                clamp=True,
            ),
            legend=alt.Legend(orient="bottom", gradientLength=220, titleLimit=320),
        ),
        tooltip=[
            f"{rows}:N",
            f"{columns}:N",
            alt.Tooltip("error:Q", title="error in %", format=".2f"),
        ],
    )
    boxes = base.transform_filter("datum.best").mark_rect(
        filled=False, stroke=INK, strokeWidth=1.6, cornerRadius=2
    )
    texts = base.mark_text(fontSize=12).encode(
        text="text:N", color=alt.condition("datum.dark", alt.value("white"), alt.value(INK))
    )
    return finish(
        alt.layer(cells, boxes, texts), title, width or max(200, 96 * len(across)), 34 * len(order)
    )


def _idle_error(runs: pd.DataFrame, acts: pd.DataFrame) -> float | None:
    """Doing nothing, in the norm mode of most runs where that was run."""
    idle = runs[runs["steps"] == 0]
    if not len(idle):
        return None
    norm = acts["spec_norm"].mode().iloc[0]
    same = idle[idle["spec_norm"] == norm]
    return float((same if len(same) else idle)["error"].mean())

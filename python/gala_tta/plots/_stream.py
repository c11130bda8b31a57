"""Figures of streams: the error while it passes, and at each visit of one that recurs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gala_tta import records
from gala_tta.plots._theme import INK, SOFT, altair, chart, finish, some, styles, with_lines

if TYPE_CHECKING:
    import pandas as pd

#: So many points that a line can be followed.
_POINTS = 75


def _line_encodings(alt: Any, table: pd.DataFrame, order: list[str]) -> dict[str, Any]:
    idle = list(table.loc[table["idle"], "line"].unique())
    colours, dashes = styles(order, idle)
    legend = alt.Legend(
        title=None, orient="right", symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=300
    )
    return {
        "color": alt.Color(
            "line:N", sort=order, scale=alt.Scale(domain=order, range=colours), legend=legend
        ),
        "strokeDash": alt.StrokeDash(
            "line:N", sort=order, scale=alt.Scale(domain=order, range=dashes), legend=legend
        ),
    }


def _best_first(table: pd.DataFrame) -> list[str]:
    return [str(line) for line in table.groupby("line")["error"].mean().sort_values().index]


def _same_stream(runs: pd.DataFrame) -> list[tuple[int, str]]:
    """The borders, which all runs must share: first batch and name."""
    streams = {
        str([record["over_time"].get("borders"), record["over_time"]["images"]]): record
        for record in runs["record"]
    }
    if len(streams) > 1:
        raise ValueError(
            f"the runs are over {len(streams)} different streams: choose one, by dataset, "
            "backbone, group, environment or trial"
        )
    (record,) = streams.values()
    return [(int(batch), str(name)) for batch, name in record["over_time"].get("borders", [])]


def error_over_stream(
    runs: pd.DataFrame, *, every: int = 0, title: str | None = None, width: int = 760
) -> Any:
    """The error of the answers while a stream passes, one line a method.

    Parameters
    ----------
    runs
        Rows of `load_records` over one stream; trials are averaged.
    every
        Batches that make a point; 0: so many that a line has about 75. No point lies across a
        border.
    """
    alt = altair()
    runs = with_lines(runs)
    borders = _same_stream(runs)
    table = records.over_time(runs)
    if not len(table):
        raise ValueError("the runs have no answers over time")
    lines = runs.drop_duplicates("key").set_index("key")[["line", "idle"]]
    table = table.join(lines, on="key")
    batches = int(table["batch"].max()) + 1
    every = every or max(1, round(batches / _POINTS))
    starts = [batch for batch, _ in borders] or [0]
    begin = table["batch"].map({b: max(s for s in starts if s <= b) for b in range(batches)})
    table["from"] = begin + (table["batch"] - begin) // every * every
    points = table.groupby(["line", "idle", "from", "segment"], as_index=False).agg(
        images=("images", "sum"), correct=("correct", "sum"), last=("batch", "max")
    )
    points["error"] = 100 * (1 - points["correct"] / points["images"])
    points["batch"] = (points["from"] + points.pop("last") + 1) / 2
    scale = alt.Scale(domain=[0, batches], nice=False)
    x = alt.X("batch:Q", title="batch", scale=scale, axis=alt.Axis(grid=False))
    tooltip = [
        alt.Tooltip("line:N", title="method"),
        alt.Tooltip("segment:N", title="domain"),
        alt.Tooltip("error:Q", title="error in %", format=".1f"),
    ]
    main = (
        chart(points[["line", "idle", "batch", "segment", "error"]])
        .mark_line(strokeWidth=2, interpolate="monotone")
        .encode(
            x=x,
            y=alt.Y("error:Q", title="error in %", axis=alt.Axis(grid=True, tickCount=6)),
            tooltip=tooltip,
            **_line_encodings(alt, points, _best_first(points)),
        )
    )
    return finish(
        alt.layer(*_border_layers(alt, borders, batches, scale), main), title, width, height=300
    )


def _border_layers(alt: Any, borders: list[tuple[int, str]], batches: int, scale: Any) -> list[Any]:
    if len(borders) < 2:
        return []
    pandas = records._pandas()
    if any("(visit " in name for _, name in borders):
        # Of a stream that recurs the borders of visits, not of domains.
        visits: dict[str, int] = {}
        for batch, name in borders:
            visits.setdefault("visit " + name.rpartition("(visit ")[2].rstrip(")"), batch)
        borders = [(batch, name) for name, batch in visits.items()]
    ends = [batch for batch, _ in borders[1:]] + [batches]
    table = pandas.DataFrame(
        [
            {"start": start, "middle": (start + end) / 2, "name": name.replace("_", " ")}
            for (start, name), end in zip(borders, ends, strict=True)
        ]
    )
    rules = (
        chart(table.iloc[1:])
        .mark_rule(color=SOFT, strokeDash=[3, 3], strokeWidth=0.8, opacity=0.7)
        .encode(x=alt.X("start:Q", title="batch", scale=scale))
    )
    names = (
        chart(table)
        .mark_text(angle=325, align="left", baseline="bottom", fontSize=10, color=INK, clip=False)
        .encode(x=alt.X("middle:Q", title="batch", scale=scale), y=alt.value(-6), text="name:N")
    )
    return [rules, names]


def error_over_visits(runs: pd.DataFrame, *, title: str | None = None, width: int = 560) -> Any:
    """The error at each visit of a stream that comes again and again: does a method last?"""
    alt = altair()
    runs = with_lines(some(runs)[some(runs)["visits"] > 1])
    table = records.domains(runs)
    lines = runs.drop_duplicates("key").set_index("key")[["line", "idle"]]
    table = table.join(lines, on="key")
    points = table.groupby(["line", "idle", "visit"], as_index=False)["error"].mean()
    points["error"] *= 100
    main = (
        chart(points)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=36))
        .encode(
            x=alt.X("visit:Q", title="visit", axis=alt.Axis(grid=False, tickMinStep=1)),
            y=alt.Y("error:Q", title="error in %", scale=alt.Scale(zero=False)),
            tooltip=["line:N", "visit:Q", alt.Tooltip("error:Q", format=".2f")],
            **_line_encodings(alt, points, _best_first(points)),
        )
    )
    return finish(main, title, width, height=280)

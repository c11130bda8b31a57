"""What all figures share: Altair, colours, names of lines, the look."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

INK, SOFT, GRID = "#1f2933", "#7b8794", "#e4e7eb"
MAIN, IDLE = "#0072B2", "#8a8f98"
#: Okabe and Ito's colours, which the colour-blind can tell apart; the light ones a little darker.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6b5b2e", "#3d3d3d")
#: Where colours come again, lines are dashed.
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
#: The usual ones always have the same.
_KNOWN = {
    "gala": "#009E73",
    "alllayers": "#D55E00",
    "allblocks": "#D55E00",
    "batchstatistics": "#56B4E9",
    "autorgn": "#E69F00",
    "autosnr": "#CC79A7",
    "randomlayer": "#6b5b2e",
    "randomblock": "#6b5b2e",
}


def altair() -> Any:
    """The module, when a figure is asked for and not before."""
    try:
        import altair as module
    except ModuleNotFoundError:
        raise ImportError(
            "figures are Altair's: pip install altair pandas, or '.[plots]' in a checkout"
        ) from None
    return module


def chart(table: pd.DataFrame) -> Any:
    """A chart over a table of any length: Altair's limit is for tables that nobody summed up."""
    alt = altair()
    return alt.Chart(alt.InlineData(values=json.loads(table.to_json(orient="records"))))


def some(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that count: a place that two claim is the later one's."""
    if "superseded" in runs:
        runs = runs[~runs["superseded"].astype(bool)]
    if not len(runs):
        raise ValueError("there is no run to draw: the frame is empty")
    return runs


def with_lines(runs: pd.DataFrame) -> pd.DataFrame:
    """Adds `line`, what a run is called in a legend, and `idle`, whether nothing adapts.

    The method is enough, unless one comes with several losses or in several groups.
    """
    runs = some(runs).copy()
    losses = runs[runs["loss"] != ""].groupby("method")["loss"].nunique()
    several = bool((losses > 1).any())
    groups = runs["group"].nunique() > 1
    names = []
    for method, loss, group in zip(runs["method"], runs["loss"], runs["group"], strict=True):
        name = str(method)
        if several and loss:
            name += f", {str(loss).replace('_', ' ')}"
        if groups and group:
            name += f" ({group})"
        names.append(name)
    runs["line"] = names
    runs["idle"] = runs["steps"] == 0
    return runs


def one_of(runs: pd.DataFrame, *columns: str) -> None:
    """Refuses runs that cannot be compared because they differ in one of the columns."""
    for column in columns:
        found = [str(value) for value in runs[column].unique()]
        if len(found) > 1:
            raise ValueError(
                f"the runs have {len(found)} different values of {column} ({', '.join(found[:6])}"
                f"{', ...' if len(found) > 6 else ''}): choose one of them"
            )


def styles(names: Sequence[str], idle: Sequence[str] = ()) -> tuple[list[str], list[list[int]]]:
    """Colour and dash of each line."""
    chosen: dict[str, str] = {}
    for name in names:
        plain = re.sub("[^a-z0-9]", "", re.split("[,(]", name)[0].lower())
        colour = _KNOWN.get(plain, IDLE if name in idle else "")
        if colour:
            chosen[name] = colour
    free = [colour for colour in _COLOURS if colour not in chosen.values()] or list(_COLOURS)
    colours, dashes, taken = [], [], 0
    used: dict[str, int] = {}
    for name in names:
        colour = chosen.get(name, "")
        if not colour:
            colour, taken = free[taken % len(free)], taken + 1
        dashes.append(_DASHES[used.get(colour, 0) % len(_DASHES)])
        used[colour] = used.get(colour, 0) + 1
        colours.append(colour)
    return colours, dashes


def finish(figure: Any, title: str | None, width: int, height: int | None) -> Any:
    """The look of every figure."""
    made = figure.properties(width=width)
    if height is not None:
        made = made.properties(height=height)
    if title:
        made = made.properties(title=title)
    return (
        made.configure(font="Helvetica, Arial, sans-serif", background="white", padding=12)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            titleFontWeight="normal",
            labelFontSize=11,
            titleFontSize=12,
            gridColor=GRID,
            domainColor=SOFT,
            tickColor=SOFT,
            titlePadding=8,
        )
        .configure_legend(
            labelColor=INK, titleColor=INK, labelFontSize=11, titleFontWeight="normal"
        )
        .configure_title(anchor="start", color=INK, fontSize=14, fontWeight="bold", offset=12)
    )

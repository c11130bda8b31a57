"""The figures of `gala report` as Altair charts, from frames of `load_records` and `load_trace`.

>>> import gala_tta as gala
>>> from gala_tta import plots
>>> runs = gala.load_records("results").query("plan == 'methods' and backbone == 'WRN-16-2'")
>>> plots.leaderboard(runs)
>>> plots.error_over_stream(runs).save("stream.html")

Each function takes the runs that it is to show: choose them as rows of the frame. Where a method
has several runs, the mean over them is drawn. Colours can be told apart by the colour-blind, and
what does nothing is grey.
"""

from gala_tta.plots._layers import cosine_map, cosines, layer_counts, selection
from gala_tta.plots._methods import error_against_cost, leaderboard, selector_map
from gala_tta.plots._stream import error_over_stream, error_over_visits

__all__ = [
    "cosine_map",
    "cosines",
    "error_against_cost",
    "error_over_stream",
    "error_over_visits",
    "layer_counts",
    "leaderboard",
    "selection",
    "selector_map",
]

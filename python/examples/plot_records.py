"""Figures of the committed records, cell by cell: run it as a script, or open it as a notebook.

python python/examples/plot_records.py --store results --out figures
"""

# %% The records of a store: one row a run.
from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import gala_tta as gala
from gala_tta import plots

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--store", default=Path(__file__).parents[2] / "results", type=Path)
parser.add_argument("--out", default=Path("figures"), type=Path)
flags, _ = parser.parse_known_args()  # a notebook has words of its own

runs = gala.load_records(flags.store, places=True)
print(f"{len(runs)} rows, {runs['key'].nunique()} runs of {runs['plan'].nunique()} plans")

# %% Methods beside each other: three orders of the same stream.
methods = runs.query("plan == 'methods' and backbone == 'WRN-16-2'")
print(methods.groupby("method")["error"].mean().sort_values().map("{:.1%}".format).to_string())
board = plots.leaderboard(methods, title="CIFAR-10-C, WRN-16-2")

# %% What an error costs, and what lies on the way of the stream.
# Times of runs that went side by side do not compare with those of runs alone.
alone = methods.query("machine == 'NVIDIA H200, tf32'")
cost = plots.error_against_cost(alone, title="Error against time, CIFAR-10-C, WRN-16-2")
first = methods[methods["trial"] == methods["trial"].min()]
stream = plots.error_over_stream(first, title="Error over the stream, CIFAR-10-C, WRN-16-2")

# %% Who should move? Losses down, selectors across.
table = runs.query("plan == 'table2' and dataset == 'CIFAR-10-C' and trial == 0")
selectors = plots.selector_map(
    table, rows="loss", columns="method", title="Error in %, CIFAR-10-C, WRN-28-10"
)

# %% One run from the inside: which layer moved when, and why.
traced = table[(table["method"] == "GALA") & (table["loss"] == "shot") & table["trace"].notna()]
moved = plots.selection(traced, title="Which layer GALA moved")
trace = gala.load_trace(traced["trace"].iloc[0])
cosines = plots.cosines(trace, threshold=0.75, title="Cosines of GALA")

# %% A chart shows itself in a notebook. As a script: files, PNG where vl-convert-python is there.
if __name__ == "__main__":
    flags.out.mkdir(parents=True, exist_ok=True)
    ending = "png" if importlib.util.find_spec("vl_convert") else "html"
    charts = {
        "leaderboard": board,
        "error_against_cost": cost,
        "error_over_stream": stream,
        "selectors": selectors,
        "selection": moved,
        "cosines": cosines,
    }
    for name, chart in charts.items():
        chart.save(str(flags.out / f"{name}.{ending}"))
        print(flags.out / f"{name}.{ending}")

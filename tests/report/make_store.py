#!/usr/bin/env python3
"""Writes a store of made-up records for tests of the report. Nothing in it was measured.

  make_store.py FOLDER [--runs N] [--hostile]

Without options: a store with something for every table and figure. --runs N: the paper's tables, and runs of sweeps
until there are N.
--hostile adds records whose texts try to break a page.
"""

import argparse
import gzip
import hashlib
import json
import math
import pathlib
import random

CORRUPTIONS = ["gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
               "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform",
               "pixelate", "jpeg_compression"]
ENVIRONMENTS = {"PACS": ["art_painting", "cartoon", "photo", "sketch"],
                "VLCS": ["Caltech101", "LabelMe", "SUN09", "VOC2007"]}
RATES = ["5e-06", "5e-05", "0.0005"]


def resnet_layers(per_stage):
    layers = [("conv1", 1, 9408), ("bn1", 1, 128)]
    for stage in range(1, 5):
        for unit in range(per_stage):
            for part in (1, 2):
                layers.append((f"layer{stage}.{unit}.conv{part}", stage, 36864 * 4 ** (stage - 1)))
                layers.append((f"layer{stage}.{unit}.bn{part}", stage, 128 * 2 ** (stage - 1)))
    return layers + [("fc", 0, 3591)]


LAYERS = {"ResNet-18": resnet_layers(2), "WRN-28-10": resnet_layers(3), "WRN-16-2": resnet_layers(1)}


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.traces = {}

    def steps_of(self, row, steps, layers):
        """Run-length coded choices, and how often each layer was chosen."""
        names = [layer[0] for layer in layers]
        choices, chosen = [], [0] * len(names)
        if row in ("Source", "ERM", "Batch statistics"):
            return [], chosen
        if row in ("All layers", "All Blocks", "AutoRGN", "AutoSNR"):
            return [[-3, steps]], [steps] * len(names)
        for step in range(steps):
            if step % 20 == 0:
                choice = -3
            elif self.random.random() < 0.02:
                choice = -1
            else:
                choice = min(len(names) - 2, int(self.random.betavariate(1.2, 2.0) * len(names)))
                chosen[choice] += 1
            if choices and choices[-1][0] == choice:
                choices[-1][1] += 1
            else:
                choices.append([choice, 1])
        return choices, chosen

    def run(self, plan, row, *, benchmark, dataset, backbone, environment="", trial=0, loss="", hyper=None,
            group="", norm="source", accuracy=0.8, domains=None, select="none", optimizer="adam:rate=0.001",
            batch=32, batches=60, inner=1, partition="module", trace=False, forgetting=0.02, collapse=False,
            data="", key=None, extra=None, visits=1, drift=0.0, milliseconds=45.0, memory=8123456789):
        hyper = hyper or {}
        layers = LAYERS[backbone]
        if partition == "block":
            layers = [(f"block{i}", i, 1000) for i in range(1, 5)]
        domains = domains or [environment or "all"]
        steps = batches * inner if loss else 0
        per_domain = batches // len(domains) // visits
        correct, borders, scores = [], [], []
        for number, name in enumerate(domains * visits):
            visit = number // len(domains)
            borders.append([number * per_domain, f"{name} (visit {visit + 1})" if visits > 1 else name])
            right = 0
            level = accuracy + 0.12 * math.sin(1.7 * (number % len(domains))) - drift * visit
            for i in range(per_domain):
                progress = (number * per_domain + i) / batches
                here = level * (1 - progress) ** 2 + 0.1 if collapse else level
                value = round(batch * min(1, max(0, here + self.random.gauss(0, 0.03))))
                correct.append(value)
                right += value
            scores.append({"name": name, "images": per_domain * batch, "correct": right})
        choices, chosen = self.steps_of(row, steps, layers)
        decades = [0] * 17
        gap_steps = steps - math.ceil(steps / 20) if loss and row not in ("All layers", "All Blocks") else 0
        for _ in range(gap_steps):
            decades[min(16, max(0, int(self.random.gauss(8, 2.5))))] += 1
        uses = []
        for (name, block, parameters), count in zip(layers, chosen):
            path = count * 0.004 * self.random.uniform(0.5, 2) if count else 0
            uses.append({"name": name, "block": block, "parameters": parameters, "chosen": count,
                         "weight": count + steps / 2000, "path": path,
                         "net": path * self.random.uniform(0.1, 0.7)})
        spec = {"protocol": f"{benchmark}:trial={trial}", "model": backbone.lower().replace("-", ""),
                "training": {"plan": {"train": {"seed": trial, "env": environment}}},
                "data": data or f"{benchmark}:env={environment}", "stream": "continual:order=" + (f",visits={visits}" if visits > 1 else ""),
                "loss": loss or "pseudo_label", "select": select, "optimizer": optimizer, "norm": norm,
                "partition": partition, "head": "freeze", "include": [], "exclude": [],
                "batch_size": batch, "inner_steps": inner, "adapt_every": 1, "episodic": False,
                "restart_at_borders": False, "predict": "adapting", "precision": "float32",
                "guard": "warn", "seed": trial}
        labels = {"plan": plan, "group": group, "row": row, "benchmark": benchmark, "dataset": dataset,
                  "backbone": backbone, "environment": environment, "trial": trial, "loss": loss,
                  "hyper": hyper}
        key = key or hashlib.sha256(json.dumps([spec, labels, len(self.lines)]).encode()).hexdigest()[:32]
        before = 9450
        record = {
            "schema": 1, "kind": "run", "key": key, "labels": labels, "spec": spec, "data_hash": "made up",
            "metrics": {}, "domains": scores,
            "source": {"augmented": False, "before": [{"name": "clean", "images": 10000, "correct": before}],
                       "after": [{"name": "clean", "images": 10000,
                                  "correct": before - round(10000 * forgetting)}]},
            "steps": steps, "refused": 0,
            "skipped": sum(times for choice, times in choices if choice == -1), "layers": uses,
            "choices": choices,
            "gap": {"steps": gap_steps, "zero": 0, "quantiles": [1e-9] * 7 if gap_steps else [],
                    "decades": decades},
            "over_time": {"images": [[batch, len(correct)]], "correct": correct, "borders": borders},
            "guard": {"judgements": batches // 10, "collapses": 3 if collapse else 0, "rollbacks": 0,
                      "stopped": False,
                      "events": [{"batch": 120, "reasons": ["few classes"], "action": "warn"}] if collapse else []},
            "cost": {"total_ms": 61234.5, "load_ms": 210.0, "batch_ms": milliseconds, "step_ms": 44.0,
                     "step_median_ms": 43.6 if loss else None, "step_95_ms": 46.2,
                     "parts_ms": {"forward": 10.2, "backward": 29.9, "measure": 3.1, "select": 0.1,
                                  "apply": 0.7} if loss else {},
                     "peak_memory": memory, "memory_of": "device"},
            "provenance": {"gala": "made up", "commit": "0000000", "compiler": "made up", "libtorch": "made up",
                           "device": "cuda", "cpu": "made up", "threads": 2, "jobs": 1,
                           "weight_hash": f"hash-{dataset}-{backbone}-{environment}-{trial}",
                           "weights": "made_up.safetensors", "date": "2026-01-31T12:00:00Z",
                           "command": "made up by tests/report/make_store.py"}}
        if benchmark != "continual":
            record["held_out"] = {"name": environment, "images": 400, "correct": round(400 * min(1, accuracy))}
            record["validation"] = [{"name": "others", "images": 900,
                                     "correct": round(900 * min(1, accuracy + self.random.uniform(0, 0.05)))}]
        if trace:
            record["trace"] = f"traces/{key}.jsonl.gz"
            lines = [{"schema": 1, "key": key, "layers": [layer[0] for layer in layers], "every": 1}]
            for step in range(1, steps + 1):
                lines.append({"step": step, "window_step": (step - 1) % 20 + 1, "loss": 0.3, "confident": batch,
                              "distance": [float(f"{10 ** self.random.uniform(-6, -0.4):.3g}") for _ in layers]})
            self.traces[key] = lines
        record.update(extra or {})
        self.lines.append(record)
        return record


def continual(maker):
    stream = dict(benchmark="continual", dataset="CIFAR-10-C", backbone="WRN-28-10", batch=200, batches=750,
                  domains=CORRUPTIONS, data="cifar10c:generate=yes")
    maker.run("table2", "Source", accuracy=0.56, **stream)
    maker.run("table2", "Batch statistics", norm="batch", accuracy=0.79, **stream)
    for loss in ("pseudo_label", "shot"):
        shift = 0.04 if loss == "shot" else 0
        adapting = dict(loss=loss, norm="batch", **stream)
        maker.run("table2", "All layers", select="all", accuracy=0.5, collapse=True, forgetting=0.8, **adapting)
        maker.run("table2", "AutoRGN", select="auto_rgn", accuracy=0.45, collapse=True, forgetting=0.8, **adapting)
        for snr in ("0.5", "0.95"):
            maker.run("table2", "AutoSNR", select=f"auto_snr:threshold={snr}", hyper={"snr": snr}, accuracy=0.4,
                      collapse=True, forgetting=0.8, **adapting)
        drawn = maker.run("table2", "Random layer", select="random", accuracy=0.67 + shift, forgetting=0.09,
                          **adapting)
        if loss == "shot":
            drawn["spec"]["shadow"] = True
        gala = maker.run("table2", "GALA", select="gala:threshold=0.75,window=20", accuracy=0.75 + shift,
                         forgetting=0.012, trace=True, **adapting)
        maker.lines.append({"schema": 1, "kind": "place", "key": gala["key"],
                            "labels": {**gala["labels"], "plan": "table4_continual", "group": "Continual TTA",
                                       "row": "With Reset"}})
        maker.run("table4_continual", "No Reset", group="Continual TTA", select="gala:threshold=0.75,window=0",
                  accuracy=0.73 + shift, **adapting)
        for method, select, levels in (("GALA", "gala", (0.79, 0.8, 0.75)), ("all layers", "all", (0.78, 0.4, 0.1))):
            for rate, accuracy in zip(("1e-05", "0.0001", "0.001"), levels):
                maker.run("ablations", rate, group=f"Learning rate, {method}", select=select, accuracy=accuracy,
                          optimizer=f"adam:rate={rate}", **adapting)


def domainbed(maker):
    methods = {"All layers": ("all", (0.80, 0.55, 0.2), 0.1), "AutoRGN": ("auto_rgn", (0.81, 0.72, 0.3), 0.04),
               "AutoSNR": ("auto_snr:threshold=0.95", (0.80, 0.56, 0.2), 0.1),
               "GALA": ("gala:threshold=0.75,window=20", (0.80, 0.82, 0.79), 0.004)}
    for environment in ENVIRONMENTS["PACS"]:
        for trial in (0, 1, 2):
            place = dict(benchmark="domainbed", dataset="PACS", backbone="ResNet-18", environment=environment,
                         trial=trial)
            maker.run("table1", "ERM", accuracy=0.8 + 0.01 * trial, **place)
            for loss in ("pseudo_label", "shot"):
                for row, (select, levels, forgetting) in methods.items():
                    for rate, accuracy in zip(RATES, levels):
                        for inner in (1, 3):
                            maker.run("table1", row, loss=loss, select=select, optimizer=f"adam:rate={rate}",
                                      inner=inner, hyper={"rate": rate, "inner_steps": str(inner)},
                                      accuracy=accuracy - 0.01 * (inner == 3), forgetting=forgetting, **place)
                for rate, accuracy in zip(RATES, (0.81, 0.83, 0.78)):
                    maker.run("table1", "GALA", loss=loss, select=methods["GALA"][0], norm="batch",
                              optimizer=f"adam:rate={rate}", hyper={"rate": rate, "inner_steps": "1"},
                              accuracy=accuracy, forgetting=0.01, **place)
    for environment in ENVIRONMENTS["VLCS"][:1]:
        maker.run("table1", "ERM", benchmark="domainbed", dataset="VLCS", backbone="ResNet-18",
                  environment=environment, accuracy=0.75)


def blocks(maker):
    for environment in ("cartoon", "sketch"):
        place = dict(benchmark="tiny_domainbed", dataset="PACS", backbone="ResNet-18", environment=environment,
                     partition="block")
        maker.run("table3", "ERM", accuracy=0.7, **place)
        for loss in ("pseudo_label", "shot"):
            for block in range(1, 5):
                for rate in RATES[:2]:
                    maker.run("table3", f"Block {block}", loss=loss, select=f"fixed:layers=block{block}",
                              optimizer=f"adam:rate={rate}", hyper={"rate": rate, "inner_steps": "1"},
                              accuracy=0.62 + 0.05 * ((block + len(environment)) % 4) + 0.01 * (rate == RATES[1]),
                              forgetting=0.05 * block, **place)
            for row, select, accuracy in (("All Blocks", "all", 0.6), ("Random Block", "random", 0.68),
                                          ("GALA", "gala:threshold=0.75,window=20", 0.73)):
                maker.run("table3", row, loss=loss, select=select, hyper={"rate": "5e-05", "inner_steps": "1"},
                          optimizer="adam:rate=5e-05", accuracy=accuracy, **place)


# Name, loss, accuracy, forgetting, milliseconds of a batch.
METHODS = [("Tent", "entropy", 0.812, 0.021, 46.0), ("ETA", "entropy", 0.823, 0.017, 46.5),
           ("EATA", "entropy", 0.821, 0.009, 52.0), ("RPL", "generalised_cross_entropy", 0.826, 0.025, 46.2),
           ("SAR", "entropy", 0.818, 0.012, 91.0), ("ROID", "soft_likelihood_ratio", 0.842, 0.006, 97.0),
           ("CMF", "soft_likelihood_ratio", 0.845, 0.005, 104.0), ("CoTTA", "consistency", 0.835, 0.008, 610.0),
           ("GALA, PL", "pseudo_label", 0.79, 0.03, 50.0), ("GALA, SHOT", "shot", 0.81, 0.01, 50.4)]


def method_runs(maker, plan, *, trials=(0,), rows=METHODS, gain=0.0, **place):
    """Doing nothing in two ways, and methods of which each has its own loss."""
    with_norm = []
    for trial in trials:
        jitter = 0.002 * trial
        maker.run(plan, "Source", accuracy=0.56, forgetting=0, milliseconds=15.0, memory=2_100_000_000, trial=trial,
                  **place)
        with_norm.append(maker.run(plan, "Batch statistics", norm="batch", accuracy=0.785 + jitter, forgetting=0.007,
                                   milliseconds=16.0, memory=2_150_000_000, trial=trial, **place))
        for number, (row, loss, accuracy, forgetting, milliseconds) in enumerate(rows):
            select = "gala:threshold=0.75,window=20" if row.startswith("GALA") else "norm_affine"
            with_norm.append(maker.run(
                plan, row, loss=loss, norm="batch", select=select, accuracy=accuracy + gain + jitter,
                forgetting=forgetting + jitter, milliseconds=milliseconds + trial, memory=4_000_000_000 + 10 ** 8 * number,
                trial=trial, drift=0.004 * (number % 4) if place.get("visits", 1) > 1 else 0, **place))
    for record in with_norm:
        record["source"]["before_in_norm"] = [{"name": "clean", "images": 10000, "correct": 9390}]


def methods(maker):
    stream = dict(benchmark="continual", dataset="CIFAR-10-C", batch=200, batches=60, domains=CORRUPTIONS[:5],
                  data="cifar10c:generate=yes")
    method_runs(maker, "methods", trials=(0, 1, 2), backbone="WRN-28-10", **stream)
    method_runs(maker, "methods", trials=(0, 1, 2), backbone="WRN-16-2", gain=-0.05, **stream)
    method_runs(maker, "methods_streams", backbone="WRN-28-10", group="Recurring",
                **{**stream, "batches": 300, "visits": 20})
    method_runs(maker, "methods_streams", backbone="WRN-28-10", group="Mixed", gain=-0.1, rows=METHODS[:4], **stream)
    adapting = dict(norm="batch", backbone="WRN-28-10", **stream)
    maker.run("methods_by_selectors", "Source", accuracy=0.56, backbone="WRN-28-10", **stream)
    maker.run("methods_by_selectors", "Batch statistics", accuracy=0.785, **adapting)
    for column, (group, select, gain) in enumerate((("Norm layers", "norm_affine", 0), ("All layers, 1e-5", "all", -0.3),
                                                    ("Random layer", "random", -0.03),
                                                    ("GALA", "gala:threshold=0.75,window=20", 0.004),
                                                    ("AutoRGN", "auto_rgn", -0.02), ("PALM", "palm", 0.002))):
        for line, (row, loss, accuracy, forgetting, milliseconds) in enumerate(METHODS[:8]):
            maker.run("methods_by_selectors", row, group=group, loss=loss, select=select, forgetting=forgetting,
                      accuracy=accuracy + gain + 0.01 * ((line + column) % 3), milliseconds=milliseconds, **adapting)


HOSTILE = ['<script>window.broken = true</script>', '"><img src=x onerror="window.broken = true">',
           "'; window.broken = true; '", '</script><script>window.broken = true</script>',
           '<svg onload="window.broken=true">', '{{constructor.constructor("window.broken=true")()}}',
           'x' * 600, 'two\nlines\tand\0nothing', '\u202ereversed', '日本語 ∞ é', '&lt;b&gt; &amp;', '%s%n|a\\b*_`[l](javascript:0)']


def hostile(maker):
    for number, text in enumerate(HOSTILE):
        record = maker.run(text, text, group=text, benchmark="continual", dataset=text, backbone="ResNet-18",
                           environment=text, loss=text, hyper={text: text}, norm=text, domains=[text, text + "2"],
                           key=text if number < 4 else None, trace=number == 0)
        record["spec"].update(select=text, optimizer=text, model=text, exclude=[text])
        record["provenance"].update(weights=text, command=text, device=text, commit=text)
        record["provenance"][text] = text
        record["guard"]["events"] = [{"batch": 1, "reason": text}]
        for layer in record["layers"]:
            layer["name"] += text
        if number % 2:
            for layer in record["layers"]:
                layer["path"] = layer["net"] = None
            for score in record["domains"]:
                score["images"] = score["correct"] = 0
            record["cost"].update(step_median_ms=None, step_ms=None)
    # Traces that are gone, and names that lead elsewhere.
    maker.lines[-1]["trace"] = "../../../../etc/passwd"
    maker.lines[-2]["trace"] = "traces/gone.jsonl.gz"
    maker.lines[-3]["provenance"] = ["no", "object"]


def fill(maker, count):
    number = 0
    while sum(line["kind"] == "run" for line in maker.lines) < count:
        number += 1
        environment = ENVIRONMENTS["PACS"][number % 4]
        record = maker.run(f"sweep{number % 7}", f"method {number // 7 % 9}", benchmark="domainbed", dataset="PACS",
                           backbone="ResNet-18", environment=environment, trial=number // 250,
                           loss=("pseudo_label", "shot")[number % 2], select="gala:threshold=0.75",
                           optimizer=f"adam:rate={RATES[number % 3]}", hyper={"rate": RATES[number % 3]},
                           accuracy=0.5 + 0.4 * maker.random.random())
        # As in a real store, no two runs take the same time and memory or end at the same moment.
        record["cost"].update(step_median_ms=maker.random.gauss(43.6, 1),
                              peak_memory=8_000_000_000 + maker.random.randrange(10 ** 8))
        minute = number * 3
        record["provenance"]["date"] = (f"2026-02-{1 + minute // 1440 % 28:02}T{minute // 60 % 24:02}:{minute % 60:02}:"
                                        f"{maker.random.randrange(60):02}Z")
        record["source"]["after"][0]["correct"] -= maker.random.randrange(500)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--hostile", action="store_true")
    arguments = parser.parse_args()
    maker = Maker(7)
    continual(maker)
    domainbed(maker)
    blocks(maker)
    if not arguments.runs:
        methods(maker)
    if arguments.hostile:
        hostile(maker)
    fill(maker, arguments.runs)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with open(arguments.folder / "records.jsonl", "w", encoding="utf-8") as file:
        for line in maker.lines:
            file.write(json.dumps(line) + "\n")
    (arguments.folder / "traces").mkdir(exist_ok=True)
    for key, lines in maker.traces.items():
        name = key if "/" not in key and "<" not in key else "hostile"
        with gzip.open(arguments.folder / "traces" / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()

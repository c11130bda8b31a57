#!/usr/bin/env python3
"""The formats of `gala report` against an independent reading of the same records: formats_test.py PROGRAM."""

import collections
import csv
import io
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent
PROGRAM = sys.argv.pop(1)


def report(*words, code=0):
    done = subprocess.run([PROGRAM, "report", *map(str, words)], capture_output=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"{words}: exit {done.returncode}: {done.stderr.decode()}")
    return (done.stdout if code == 0 else done.stderr).decode()


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def accuracy(record):
    return statistics.mean(score["correct"] / score["images"] for score in record["domains"])


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.store = pathlib.Path(cls.folder.name) / "store"
        subprocess.run([sys.executable, HERE / "make_store.py", cls.store], check=True)
        cls.records = [record for record in read_lines(cls.store / "records.jsonl") if record["kind"] == "run"]
        cls.cells = {}
        for line in csv.DictReader(io.StringIO(report(cls.store, "--format", "csv"), newline="")):
            key = (line["table"], line["rule"], line["norm"], line["heads"], line["column"])
            assert key not in cls.cells, key
            cls.cells[key] = line

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def cell(self, *key):
        return self.cells[key]

    def of(self, **labels):
        return [record for record in self.records
                if all(record["labels"][name] == value for name, value in labels.items())]

    def test_continual_errors_and_their_deviation_over_corruptions(self):
        for loss, name in (("pseudo_label", "PL"), ("shot", "SHOT")):
            for row in ("All layers", "AutoRGN", "Random layer", "GALA"):
                [record] = self.of(plan="table2", row=row, loss=loss)
                errors = [100 * (1 - score["correct"] / score["images"]) for score in record["domains"]]
                cell = self.cell("table2", "per_loss", "batch", f"{name} / {row}", "CIFAR-10-C")
                self.assertEqual(cell["state"], "value")
                self.assertAlmostEqual(float(cell["value"]), statistics.mean(errors), places=9)
                self.assertAlmostEqual(float(cell["deviation"]), statistics.stdev(errors), places=9)
                self.assertEqual(cell["runs"], record["key"])
        self.assertEqual(self.cell("table2", "per_loss", "batch", "PL / GALA", "CIFAR-100-C")["state"], "not run")

    def test_domainbed_by_every_rule(self):
        # Chosen here by brute force; the program's rules are written down in docs/records.md.
        for norm in ("source", "batch"):
            for loss, name in (("pseudo_label", "PL"), ("shot", "SHOT")):
                sets = collections.defaultdict(dict)
                for record in self.of(plan="table1", row="GALA", loss=loss, dataset="PACS"):
                    if record["spec"]["norm"] == norm:
                        labels = record["labels"]
                        sets[json.dumps(labels["hyper"], sort_keys=True)][labels["environment"], labels["trial"]] = record
                # Among equals the first by name wins, as in the program.
                sets = dict(sorted(sets.items()))
                best = max(sets.values(), key=lambda runs: statistics.mean(map(accuracy, runs.values())))
                places = list(best)
                oracle = {place: max((runs[place] for runs in sets.values()), key=accuracy) for place in places}
                validated = {place: max((runs[place] for runs in sets.values()),
                                        key=lambda record: record["validation"][0]["correct"]) for place in places}
                for rule, runs in (("per_loss", best), ("per_dataset", best), ("oracle", oracle),
                                   ("training_domain", validated)):
                    trials = [100 * statistics.mean(accuracy(run) for (_, trial), run in runs.items() if trial == wanted)
                              for wanted in (0, 1, 2)]
                    cell = self.cell("table1", rule, norm, f"ResNet-18 / {name} / GALA", "PACS")
                    self.assertAlmostEqual(float(cell["value"]), statistics.mean(trials), places=9)
                    self.assertAlmostEqual(float(cell["deviation"]), statistics.stdev(trials), places=9)
                    self.assertLessEqual(float(cell["low"]), float(cell["value"]))
                    self.assertGreaterEqual(float(cell["high"]), float(cell["value"]))
                    self.assertEqual(len(cell["runs"].split()), 12)
                    mean = self.cell("table1", rule, norm, f"ResNet-18 / {name} / GALA", "Mean")
                    self.assertEqual((mean["state"], mean["note"], mean["difference"]), ("partial", "PACS only", ""))

    def test_repeats_within_a_window(self):
        # Counted here from the choices: a step at which several layers move opens a window.
        choices = repeats = 0
        for record in self.records:
            if not record["spec"]["select"].startswith("gala"):
                continue
            seen = set()
            for layer, times in record["choices"]:
                for _ in range(times):
                    if layer == -3:
                        seen.clear()
                    elif layer >= 0:
                        choices += 1
                        repeats += layer in seen
                        seen.add(layer)
        [table] = json.loads(report(self.store, "--format", "json", "--table", "rotation"))["tables"]
        names = [column["name"] for column in table["columns"]]
        total = lambda name: sum(row["cells"][names.index(name)]["value"] for row in table["rows"])
        self.assertGreater(repeats, 0)
        self.assertEqual((total("Choices"), total("Repeats")), (choices, repeats))

    def test_blocks(self):
        best, worst, gala = [], [], []
        for environment in ("cartoon", "sketch"):
            for loss in ("pseudo_label", "shot"):
                blocks = []
                for block in range(1, 5):
                    grid = collections.defaultdict(list)
                    for record in self.of(plan="table3", row=f"Block {block}", loss=loss):
                        grid[record["labels"]["hyper"]["rate"]].append(record)
                    rate = max(grid, key=lambda name: statistics.mean(map(accuracy, grid[name])))
                    blocks += [accuracy(record) for record in grid[rate]
                               if record["labels"]["environment"] == environment]
                best.append(100 * max(blocks))
                worst.append(100 * min(blocks))
                gala += [100 * accuracy(record) for record in
                         self.of(plan="table3", row="GALA", loss=loss, environment=environment)]
        for row, values in (("Best Block (oracle)", best), ("Worst Block (oracle)", worst), ("GALA", gala)):
            cell = self.cell("table3", "per_loss", "source", row, "TTA Acc.")
            self.assertAlmostEqual(float(cell["value"]), statistics.mean(values), places=9)
            self.assertEqual(cell["note"], "2 of 6 shifts")

    def test_methods_by_error_and_cost(self):
        [table] = json.loads(report(self.store, "--format", "json", "--table", "plan-methods"))["tables"]
        self.assertEqual(table["heads"], ["Network", "Method"])
        places = {column["name"]: number for number, column in enumerate(table["columns"])}
        for network in ("WRN-28-10", "WRN-16-2"):
            rows = [row for row in table["rows"] if row["heads"][0] == network]
            numbers = {}
            for row in rows:
                runs = self.of(plan="methods", row=row["heads"][1], backbone=network)
                self.assertEqual(len(runs), 3)
                clean = lambda run, when: run["source"][when][0]["correct"] / run["source"][when][0]["images"]
                wanted = {"Error": [100 * (1 - accuracy(run)) for run in runs],
                          "Forget.": [100 * (clean(run, "before") - clean(run, "after")) for run in runs],
                          # Batches have 200 images, all of them.
                          "ms per image": [run["cost"]["batch_ms"] / 200 for run in runs],
                          "Memory, GB": [run["cost"]["peak_memory"] / 1e9 for run in runs]}
                for name, values in wanted.items():
                    cell = row["cells"][places[name]]
                    self.assertAlmostEqual(cell["value"], statistics.mean(values), places=9)
                    if name in ("Error", "Forget."):
                        self.assertAlmostEqual(cell["deviation"], statistics.stdev(values), places=9)
                numbers[row["heads"][1]] = {name: statistics.mean(values) for name, values in wanted.items()}
            errors = [numbers[row["heads"][1]]["Error"] for row in rows]
            self.assertEqual(errors, sorted(errors))
            adapting = [name for name in numbers if name not in ("Source", "Batch statistics")]
            for name, rivals in (("Error", list(numbers)), ("Forget.", adapting), ("ms per image", adapting)):
                best = min(rivals, key=lambda method: numbers[method][name])
                self.assertEqual([row["heads"][1] for row in rows if row["cells"][places[name]].get("best")], [best])

    def test_the_last_visit(self):
        [table] = json.loads(report(self.store, "--format", "json", "--table", "plan-methods_streams"))["tables"]
        column = [column["name"] for column in table["columns"]].index("Last visit")
        for row in table["rows"]:
            [run] = self.of(plan="methods_streams", group=row["heads"][0], row=row["heads"][1])
            cell = row["cells"][column]
            if row["heads"][0] == "Mixed":
                self.assertEqual(cell["state"], "not applicable")
                continue
            # From the batches, which the program does not go by.
            time = run["over_time"]
            self.assertEqual(len(time["borders"]), 100)
            begin = next(batch for batch, name in time["borders"] if name.endswith("(visit 20)"))
            [[size, _]] = time["images"]
            right = time["correct"][begin:]
            self.assertAlmostEqual(cell["value"], 100 * (1 - sum(right) / (size * len(right))), places=9)

    def test_a_run_may_stand_in_two_tables(self):
        [record] = self.of(plan="table2", row="GALA", loss="shot")
        cell = next(line for key, line in self.cells.items()
                    if key[0] == "supplement2" and key[3] == "Continual TTA / With Reset" and key[4] == "CIFAR-10-C: SHOT")
        self.assertEqual(cell["runs"], record["key"])
        self.assertAlmostEqual(float(cell["value"]), 100 * accuracy(record), places=9)
        self.assertAlmostEqual(float(cell["difference"]), 100 * accuracy(record) - 79.54, places=9)

    def test_pandas_loads_the_csv(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = pandas.read_csv(io.StringIO(report(self.store, "--format", "csv")))
        self.assertEqual(len(frame), len(self.cells))
        self.assertEqual(frame["value"].dtype, float)
        self.assertTrue((frame[frame.state == "not run"].value.isna()).all())

    def test_json_and_csv_agree(self):
        tables = json.loads(report(self.store, "--format", "json"))["tables"]
        seen = 0
        for table in tables:
            for row in table["rows"]:
                for column, cell in zip(table["columns"], row["cells"]):
                    name = f"{column['over']}: {column['name']}" if column["over"] else column["name"]
                    line = self.cell(table["id"], table["rule"], table["norm"], " / ".join(row["heads"]), name)
                    self.assertEqual(line["state"], cell["state"])
                    self.assertEqual(line["value"] != "" and float(line["value"]), cell.get("value", False))
                    seen += 1
        self.assertEqual(seen, len(self.cells))

    def test_markdown_rows_are_whole(self):
        text = report(self.store, "--format", "md")
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertGreater(len(rows), 50)
        for block in re.split(r"\n\n", text):
            lines = [line for line in block.splitlines() if line.startswith("|")]
            self.assertLessEqual(len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}), 1)
        self.assertIn("not run [32.87]", text)
        self.assertIn("*PACS only*", text)
        only = report(self.store, "--format", "md", "--table", "table2")
        self.assertEqual(re.findall("^### .*", only, re.M), ["### Table 2: continual TTA"])

    def test_latex_is_balanced(self):
        text = report(self.store, "--format", "latex", "--rule", "oracle")
        self.assertIn("(oracle).", text)
        for name in ("table", "tabular"):
            self.assertEqual(text.count(f"\\begin{{{name}}}"), text.count(f"\\end{{{name}}}"))
        bare = re.sub(r"\\[\\{}&%$#_]", "", text)
        self.assertEqual(bare.count("{"), bare.count("}"))
        self.assertEqual(bare.count("$") % 2, 0)
        for columns, body in re.findall(r"\\begin{tabular}{(\w+)}(.*?)\\end{tabular}", text, re.S):
            for line in body.splitlines():
                if line.endswith("\\\\") and "multicolumn" not in line:
                    self.assertEqual(len(re.findall(r"(?<!\\)&", line)) + 1, len(columns), line)

    def test_picture(self):
        namespace = "{http://www.w3.org/2000/svg}"
        picture = xml.etree.ElementTree.fromstring(report(self.store, "--format", "svg", "--chart", "CIFAR-10-C, SHOT"))
        texts = ["".join(text.itertext()) for text in picture.iter(namespace + "text")]
        for row in ("All layers", "AutoRGN", "Random layer", "GALA"):
            [record] = self.of(plan="table2", row=row, loss="shot")
            self.assertEqual(texts.count(f"{row} {100 * (1 - accuracy(record)):.1f}"), 1, (row, texts))
        self.assertEqual(sum(text.startswith("Source model ") for text in texts), 1)
        # A stroke for every layer that moved alone, at its row; a box for every opening of a window.
        [record] = self.of(plan="table2", row="GALA", loss="shot")
        paths = list(picture.iter(namespace + "path"))
        [dots] = [path.get("d") for path in paths if path.get("stroke-linecap") == "round"]
        heights = [float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)", dots)]
        chosen = [choice for choice, _ in record["choices"] if choice >= 0]
        rows = dict(zip(sorted(set(chosen)), sorted(set(heights))))
        self.assertEqual(heights, [rows[choice] for choice in chosen])
        openings = [path.get("d") for path in paths if path.get("fill") == "#e0992a"][0].count("z")
        self.assertEqual(openings, sum(choice == -3 for choice, _ in record["choices"]))
        self.assertEqual(report(self.store, "--format", "svg"),
                         report(self.store, "--format", "svg", "--chart", "CIFAR-10-C, PL"))
        problem = report(self.store, "--format", "svg", "--chart", "CIFAR-10-C", code=2)
        self.assertIn('there is no chart "CIFAR-10-C" (there are: "CIFAR-10-C, PL", "CIFAR-10-C, SHOT")', problem)
        trace = report(HERE / "trace.jsonl", "--format", "svg")
        self.assertIn("The layers that moved", trace)
        xml.etree.ElementTree.fromstring(trace)

    def test_wrong_words(self):
        self.assertIn("no such store", report("nowhere", code=2))
        self.assertIn("known are html", report(self.store, "--format", "pdf", code=2))
        self.assertIn("known are per_loss", report(self.store, "--rule", "best", "--format", "md", code=2))
        unknown = report(self.store, "--table", "table9", "--format", "md", code=2)
        self.assertIn("there is no table", unknown)
        self.assertIn(", cost)", unknown)
        self.assertIn("there is no table of norm mode \"bacth\"",
                      report(self.store, "--norm", "bacth", "--format", "md", code=2))
        self.assertIn("names one row twice", report(self.store, "--compare", "GALA", "GALA", "--format", "md", code=2))
        # What a format would not hear is no word said in vain.
        for words, flag in ((["--table", "table2"], "--table"), (["--rule", "oracle"], "--rule"),
                            (["--norm", "batch"], "--norm"), (["--chart", "x"], "--chart")):
            self.assertIn(f"{flag} needs --format", report(self.store, *words, code=2))
        self.assertIn("--chart needs --format svg", report(self.store, "--chart", "x", "--format", "md", code=2))
        self.assertIn("is the file of a store; name its folder",
                      report(pathlib.Path(self.store) / "records.jsonl", "--format", "md", code=2))
        self.assertIn("line 1", report(HERE / "make_store.py", "--format", "md", code=2))
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("does not exist", report(empty, "--format", "md", code=2))
            (pathlib.Path(empty) / "records.jsonl").touch()
            self.assertIn("Not run.", report(empty, "--format", "md"))

    def test_trace(self):
        lines = read_lines(HERE / "trace.jsonl")
        chosen = collections.Counter(layer["name"] for line in lines for layer in line["layers"] if layer["weight"] == 1)
        table = csv.DictReader(io.StringIO(report(HERE / "trace.jsonl", "--format", "csv"), newline=""))
        counts = {line["heads"]: float(line["value"]) for line in table if line["column"] == "Chosen"}
        self.assertEqual(counts, {name: chosen[name] for name in counts})
        self.assertTrue(math.isclose(sum(counts.values()), 57))


if __name__ == "__main__":
    unittest.main()

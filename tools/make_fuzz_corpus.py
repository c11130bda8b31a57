#!/usr/bin/env python3
"""Makes fuzz/corpus: a few small files of each format, from which the fuzz targets start.

    .venv/bin/python tools/make_fuzz_corpus.py [FOLDER]

Needs torch and numpy. Pictures, plans, traces and records are those that the tree holds already.
"""

import collections
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import struct
import sys
import zipfile

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]


def idx(shape, values):
    head = bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", size) for size in shape)
    return head + bytes(values)


def safetensors(tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def state(values, tensors):
    """As write_state does: a sum over the values, then over each tensor in the order of names."""
    text = json.dumps(values, separators=(",", ":"))
    total = hashlib.sha256(text.encode())
    names = {"F32": "Float", "I64": "Long"}
    for name, (dtype, shape, content) in sorted(tensors.items()):
        sizes = ",".join(map(str, shape))
        total.update(f"\n{name} {names[dtype]} [{sizes}] {hashlib.sha256(content).hexdigest()}".encode())
    return safetensors(tensors, {"gala_checksum": total.hexdigest(), "gala_state": text})


def archive(entries, method=zipfile.ZIP_STORED, comment=b"", zip64=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.comment = comment
        for name, content in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            with file.open(info, "w", force_zip64=zip64) as entry:
                entry.write(content)
    return out.getvalue()


def saved(value, **options):
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def pickle_of(checkpoint):
    with zipfile.ZipFile(io.BytesIO(checkpoint)) as file:
        return next(file.read(name) for name in file.namelist() if name.endswith("data.pkl"))


class Net(torch.nn.Module):
    """A classifier with a branch, a norm, a view and arithmetic on sizes."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4 * 4, 3)
        self.register_buffer("scale", torch.full((1, 4, 1, 1), 2.0))

    def forward(self, images):
        maps = torch.relu(self.norm(self.conv(images)))
        maps = torch.cat([maps * self.scale, maps + images.mean(1, keepdim=True)], 1)[:, :4]
        maps = torch.nn.functional.adaptive_avg_pool2d(maps, 2)
        return self.fc(maps.view(maps.shape[0], -1))


def exported():
    torch.manual_seed(0)
    program = torch.export.export(Net().eval(), (torch.zeros(2, 3, 8, 8),),
                                  dynamic_shapes=({0: torch.export.Dim("batch")},))
    out = io.BytesIO()
    torch.export.save(program, out)
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    # Sample inputs and stack traces are not read and only make the files large.
    model = next(name for name in contents if name.endswith("models/model.json"))
    graph = json.loads(contents[model])
    for node in graph["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {key: text for key, text in node["metadata"].items() if key == "nn_module_stack"}
    contents[model] = json.dumps(graph, separators=(",", ":")).encode()
    contents = {name: content for name, content in contents.items() if "sample_inputs" not in name}
    return archive(contents), contents[model]


def arrays():
    for name, array in {"bytes": numpy.arange(12, dtype=numpy.uint8).reshape(2, 6),
                        "labels": numpy.arange(5), "half": numpy.array([1, 2, 3], numpy.float16),
                        "swapped": numpy.arange(4, dtype=">i4"), "one": numpy.array(7.0),
                        "fortran": numpy.asfortranarray(numpy.arange(24.0).reshape(2, 3, 4)),
                        "empty": numpy.zeros((0, 3), numpy.float32)}.items():
        out = io.BytesIO()
        numpy.save(out, array)
        yield f"{name}.npy", out.getvalue()
    out = io.BytesIO()
    numpy.lib.format.write_array(out, numpy.arange(3.0), version=(2, 0))
    yield "version2.npy", out.getvalue()


def weights():
    torch.manual_seed(0)
    plain = {"conv.weight": torch.zeros(4, 4), "fc.bias": torch.ones(16)}
    yield "plain", plain
    yield "nested", {"epoch": 3, "state_dict": collections.OrderedDict(plain), "rate": 0.1, "name": "net"}
    yield "parameters", {f"module.{key}": torch.nn.Parameter(value) for key, value in plain.items()}
    yield "views", {"view": torch.arange(16.0).view(4, 4).t(), "part": torch.arange(16.0)[3:7],
                    "repeated": torch.ones(1).expand(5)}
    yield "types", {"long": torch.arange(8), "mask": torch.ones(64, dtype=torch.bool)}
    yield "module", torch.nn.Sequential(torch.nn.Linear(1, 2))


TEXTS = {
    "spec": {
        "plain": "gala", "options": "gala:window=20,threshold=0.75",
        "quotes": 'folder:path="a, b: c",labels="say \\"x\\" \\\\"',
        "plus": 'a:b="x+y"', "several": "restore:share=0.01+ensemble:teacher=1e+5+none", "empty": "", "none": "none",
    },
    "train_plan": {"bracket.toml": "[=", "letter.toml": "\u0178\u0003"},
    "plan": {
        "bracket.toml": "[plan]\n[=\n", "letter.toml": '[plan]\ntitle = "cos"\u03b1\n',
        "laughs.toml": '[plan]\nname = "x"\n[run]\na = "{b}{b}{b}{b}"\nb = "{a}{a}{a}{a}"\nmodel = "{a}"\n',
        "grid.toml": """[plan]
name = "small"
title = "A grid"
hyper = ["rate"]

[run]
protocol = "continual"
model = "wide_resnet:depth=10,width=1,classes=10"
optimizer = "adam:rate={rate}"
stream = "mixed:{order}"
order = "seed={seed}"

[axes]
rate = [1e-3, 0.0001]
seed = [0, 1]
trace = true

[[case]]
dataset = "A"

[[row]]
name = "{dataset} with {select}"
select = ["gala", "all"]

[[row]]
name = "fixed"
hyper = []
method = "tent"
group = "one"
trial = 2
""",
    },
    "trace": {
        "packed.jsonl": """{"schema":1,"key":"0123456789abcdef","layers":["a","b"],"every":1}
{"step":1,"window_step":1,"loss":0.5,"confident":3,"distance":[0,0]}
{"step":2,"window_step":2,"loss":null,"confident":0,"distance":[1e-05,0.25]}
{"step":3,"window_step":3,"loss":0.25,"confident":7,"distance":[null,2]}
""",
    },
}


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def copy_from_the_tree(folder):
    fixtures = ROOT / "tests/data/fixtures"
    for kind, endings in {"png": ["png"], "jpeg": ["jpg"]}.items():
        for ending in endings:
            for path in sorted(fixtures.glob(f"*.{ending}")):
                if path.stat().st_size < 4000:
                    write(folder / kind, path.name, path.read_bytes())
    for path in sorted((ROOT / "plans").rglob("*.toml")):
        kind = "train_plan" if "[data]" in path.read_text() else "plan"
        if path.stat().st_size < 2500:
            write(folder / kind, path.name, path.read_bytes())
    lines = (ROOT / "tests/report/trace.jsonl").read_text().splitlines(keepends=True)
    write(folder / "trace", "adapt.jsonl", "".join(lines[:4]))
    shortest = {}
    for path in sorted((ROOT / "results").rglob("records.jsonl")):
        for line in path.read_text().splitlines(keepends=True):
            record = json.loads(line)
            kind = record["kind"], record.get("labels", {}).get("benchmark"), "source" in record
            if kind not in shortest or len(line) < len(shortest[kind]):
                shortest[kind] = line
    runs = {key: line for key, line in shortest.items() if key[0] == "run"}
    for (_, benchmark, _), line in runs.items():
        write(folder / "record", f"{benchmark}.jsonl", line)
    # Further places, all of one run.
    run = min(runs.values(), key=len)
    places = [dict(json.loads(line), key=json.loads(run)["key"]) for key, line in shortest.items() if key[0] == "place"]
    write(folder / "record", "places.jsonl", run + "".join(json.dumps(place) + "\n" for place in places))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "fuzz/corpus"
    shutil.rmtree(folder, ignore_errors=True)
    for kind, files in TEXTS.items():
        for name, text in files.items():
            write(folder / kind, name, text)
    images = idx([10, 2, 2], range(40))
    write(folder / "idx", "images", images)
    write(folder / "idx", "images.gz", gzip.compress(images, mtime=0))
    write(folder / "idx", "labels", idx([10], range(10)))
    write(folder / "cifar", "ten.bin", bytes([3]) + bytes(range(256)) * 12)
    write(folder / "cifar", "hundred.bin", bytes([1, 99]) + bytes(range(256)) * 12)
    write(folder / "cifar", "labels.json", "[7]")
    for name, content in arrays():
        write(folder / "npy", name, content)
    entries = {"net/data.pkl": b"\x80\x02}q\x00.", "net/version": b"3\n"}
    write(folder / "zip", "stored.zip", archive(entries))
    write(folder / "zip", "deflated.zip", archive({"a": b"abc" * 100, "b": b""}, zipfile.ZIP_DEFLATED))
    write(folder / "zip", "large.zip", archive(entries, comment=b"a comment", zip64=True))
    tensors = {"fc.bias": ("F32", [3], struct.pack("<3f", 1, 2, 3)), "count": ("I64", [], struct.pack("<q", 7))}
    write(folder / "safetensors", "plain", safetensors(tensors, {"classes": '["cat","dog","cow"]'}))
    write(folder / "safetensors", "types", safetensors(
        {name: (name, [2], bytes(range(2 * size))) for name, size in
         {"F64": 8, "F16": 2, "BF16": 2, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}.items()}))
    write(folder / "safetensors", "empty", safetensors({"none": ("F32", [0, 4], b"")}))
    values = {"version": 5, "clock": {"step": 3}, "totals": {"chosen": [1, 0], "path": [0.5, 0]}}
    write(folder / "state", "file", state(values, tensors))
    write(folder / "state", "values.json", json.dumps(values))
    for name, value in weights():
        write(folder / "checkpoint", f"{name}.pt", saved(value))
        write(folder / "pickle", f"{name}.pkl", pickle_of(saved(value)))
    write(folder / "pickle", "protocol4.pkl", pickle_of(saved({"a": torch.zeros(16)}, pickle_protocol=4)))
    whole, graph = exported()
    write(folder / "exported", "net.pt2", whole)
    write(folder / "exported_graph", "net.json", graph)
    copy_from_the_tree(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

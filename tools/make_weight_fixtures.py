"""Writes small weight files, and what they hold, for the tests of gala/model.

usage: make_weight_fixtures.py FOLDER        (a Python with torch)

FOLDER is made anew. expected.json maps a file's name to its tensors in the order of the file, each
with name, type (as LibTorch prints it), shape and all values as numbers. plain.sha256 is the hash of
the network in plain.pt.
"""

import argparse
import hashlib
import json
import os
import shutil
import struct
import sys
import warnings
import zipfile

import numpy
import torch

TYPES = {
    torch.float64: ("F64", "Double"),
    torch.float32: ("F32", "Float"),
    torch.float16: ("F16", "Half"),
    torch.bfloat16: ("BF16", "BFloat16"),
    torch.int64: ("I64", "Long"),
    torch.int32: ("I32", "Int"),
    torch.int16: ("I16", "Short"),
    torch.int8: ("I8", "Char"),
    torch.uint8: ("U8", "Byte"),
    torch.bool: ("BOOL", "Bool"),
}


class Fixtures:
    def __init__(self, folder):
        self.folder = folder
        self.expected = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def expect(self, file, tensors):
        self.expected[file] = [
            {
                "name": name,
                "type": TYPES[tensor.dtype][1],
                "shape": list(tensor.shape),
                "values": tensor.detach().double().flatten().tolist(),
            }
            for name, tensor in tensors.items()
        ]


def bytes_of(tensor):
    flat = tensor.detach().contiguous().flatten()
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def safetensors_bytes(tensors, metadata):
    """The format as its specification says: names in the order given, padded with spaces to 8 bytes."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        content = bytes_of(tensor)
        header[name] = {
            "dtype": TYPES[tensor.dtype][0],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def tensors_of_every_type():
    torch.manual_seed(1)
    tensors = {}
    for dtype in TYPES:
        values = torch.randn(2, 3) * 100
        tensors[str(dtype).removeprefix("torch.")] = (
            values > 0 if dtype == torch.bool else values.abs().to(dtype)
            if dtype == torch.uint8 else values.to(dtype))
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.zeros(2, 0, 3)
    return tensors


def write_safetensors(fixtures):
    tensors = tensors_of_every_type()
    # Zero-sized tensors take no place, so a reader by place sees them before what follows them.
    tensors["ünicode.größe"] = torch.arange(4, dtype=torch.int32)
    metadata = {"gala": '{"classes": ["a"]}', "note": 'größe " \\'}
    with open(fixtures.path("types.safetensors"), "wb") as file:
        file.write(safetensors_bytes(tensors, metadata))
    fixtures.expect("types.safetensors", tensors)

    unaligned = {"a": torch.tensor([7], dtype=torch.uint8), **tensors_of_every_type()}
    with open(fixtures.path("unaligned.safetensors"), "wb") as file:
        file.write(safetensors_bytes(unaligned, None))
    fixtures.expect("unaligned.safetensors", unaligned)


def small_network():
    torch.manual_seed(2)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(),
        torch.nn.Linear(4, 2))
    network(torch.randn(5, 3, 3, 3))
    return network


def weight_hash(network):
    """Parameters, then buffers: a line of name, type and shape, then the bytes."""
    digest = hashlib.sha256()
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        if not name.endswith("num_batches_tracked"):
            shape = ",".join(str(size) for size in tensor.shape)
            digest.update(f"{name} Float [{shape}]\n".encode() + bytes_of(tensor))
    return digest.hexdigest()


def save(fixtures, file, content, tensors, **options):
    torch.save(content, fixtures.path(file), **options)
    fixtures.expect(file, tensors)


def repack(fixtures, source, file, replace=None, method=zipfile.ZIP_STORED):
    """The entries of a checkpoint under another folder, by Python's own zip writer."""
    with zipfile.ZipFile(fixtures.path(source)) as old, \
            zipfile.ZipFile(fixtures.path(file), "w", method) as new:
        for name in old.namelist():
            short = name.split("/", 1)[1]
            new.writestr("another folder/" + short, (replace or {}).get(short, old.read(name)))
    fixtures.expected[file] = fixtures.expected.get(source, [])


def write_checkpoints(fixtures):
    network = small_network()
    weights = network.state_dict()
    save(fixtures, "plain.pt", weights, weights)
    with open(fixtures.path("plain.sha256"), "w") as file:
        file.write(weight_hash(network))
    for protocol in (2, 3, 4, 5):
        save(fixtures, f"protocol{protocol}.pt", weights, weights, pickle_protocol=protocol)
    for key in ("state_dict", "model_state_dict", "model", "net", "params"):
        save(fixtures, f"under_{key}.pt", {"epoch": 3, key: weights, "loss": [0.5, None]}, weights)
    save(fixtures, "nested.pt", {"model": {"state_dict": weights}}, weights)

    optimizer = torch.optim.Adam(network.parameters())
    network(torch.randn(5, 3, 3, 3)).sum().backward()
    optimizer.step()
    weights = network.state_dict()
    training = {
        "epoch": 200, "arch": "resnet", "best_prec1": torch.tensor(92.6),
        "best": numpy.float64(3.5), "array": numpy.arange(3), "seen": {1, 2}, "raw": b"\x00\xff",
        "long": 1 << 80, "negative": -(1 << 40), "device": torch.device("cpu"),
        "shape": torch.Size([1, 2]), "dtype": torch.float32, "complex": 1j,
        "args": argparse.Namespace(lr=0.1, names=["a", "b"]), "optimizer": optimizer.state_dict(),
        "state_dict": {"module." + name: tensor for name, tensor in weights.items()},
    }
    save(fixtures, "training.th", training, weights)
    save(fixtures, "half_prefixed.pt", {"module.a": torch.ones(1), "b": torch.ones(1)},
         {"module.a": torch.ones(1), "b": torch.ones(1)})

    types = tensors_of_every_type()
    save(fixtures, "types.pt", types, types)
    base = torch.arange(24, dtype=torch.float32)
    marked = torch.tensor([1.0, 2.0])
    marked.note = "a tensor with an attribute"
    noted = torch.nn.Parameter(torch.tensor([3.0]))
    noted.note = "so has this parameter"
    views = {
        "whole": base, "part": base[5:9], "transposed": base.view(4, 6).t(),
        "steps": base.view(2, 3, 4)[:, ::2, 1], "repeated": torch.tensor([2.0]).expand(3, 4),
        "channels_last": torch.randn(2, 3, 2, 2).to(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(base[:3]), "marked": marked, "noted": noted,
    }
    save(fixtures, "views.pt", views, views)
    many = {f"layer{i}": torch.full((2,), float(i)) for i in range(300)}
    save(fixtures, "many.pt", many, many)
    repack(fixtures, "views.pt", "repacked.pt")
    repack(fixtures, "views.pt", "deflated.pt", method=zipfile.ZIP_DEFLATED)

    # These are to be refused.
    repack(fixtures, "views.pt", "big_endian.pt", {"byteorder": b"big"})
    torch.save(weights, fixtures.path("legacy.pt"), _use_new_zipfile_serialization=False)
    torch.save(network, fixtures.path("module.pt"))
    torch.save({"model": network, "epoch": 1}, fixtures.path("module_inside.pt"))
    torch.save({"epoch": 3, "lists": [[1], [2]]}, fixtures.path("no_tensors.pt"))
    torch.save([torch.ones(2)], fixtures.path("list.pt"))
    torch.save({"a": torch.eye(2).to_sparse()}, fixtures.path("sparse.pt"))
    torch.save({"a": torch.ones(2, dtype=torch.uint16)}, fixtures.path("uint16.pt"))
    torch.save({"a": torch.ones(2, dtype=torch.complex64)}, fixtures.path("complex.pt"))
    torch.jit.script(torch.nn.Linear(1, 1)).save(fixtures.path("script.pt"))
    numpy.savez(fixtures.path("arrays.npz"), a=numpy.ones(2))


def main():
    warnings.simplefilter("ignore")
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    fixtures = Fixtures(folder)
    write_safetensors(fixtures)
    write_checkpoints(fixtures)
    with open(fixtures.path("expected.json"), "w") as file:
        json.dump(fixtures.expected, file)


if __name__ == "__main__":
    main()

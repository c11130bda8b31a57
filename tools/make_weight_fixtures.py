"""Writes small weight files, and what they hold, for the tests of gala/model.

usage: make_weight_fixtures.py FOLDER        (a Python with torch)

FOLDER is made anew. expected.json maps a file's name to its tensors in the order of the file, each
with name, type (as LibTorch prints it), shape and all values as numbers.
"""

import json
import os
import shutil
import struct
import sys

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


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    fixtures = Fixtures(folder)
    write_safetensors(fixtures)
    with open(fixtures.path("expected.json"), "w") as file:
        json.dump(fixtures.expected, file)


if __name__ == "__main__":
    main()

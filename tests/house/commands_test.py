#!/usr/bin/env python3
"""The documented commands, each in a small variant: commands_test.py PROGRAM SOURCE.

Every `gala` line of README and docs that lists, inspects, adapts, corrupts or reports is run as it stands, in the
order of its page, in a folder where all that it names lies in small: networks of 10 layers, a dozen pictures. What is
taken off or put in is told below (SMALL), and which lines are left out and why (LEFT_OUT); `gala run` and `gala train`
have tests of their own with the committed plans. Without torch: pictures and arrays are written here.
"""

import importlib.machinery
import importlib.util
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib

SIDE = 32
# Patterns of a line and what stands in their place.
SMALL = [
    (r" --device cuda", ""), (r" --precision \w+", ""),
    (r"--model (?:resnet18|resnet50|wide_resnet\S*depth=28,width=10)[:,]classes=(\d+)",
     r"--model wide_resnet:depth=10,width=1,classes=\1"),
    (r"adapt \.\.\.", "adapt --weights wrn16_2_cifar10.safetensors --data cifar10:path=data/cifar10"),
    (r"path=assets/cifar10_test_2000\.png", "path=data/cifar10"),
    (r"--corruption all", "--corruption fog,contrast"), (r"corruption=all", "corruption='\"fog,contrast\"'"),
    (r"\bgala report mine", "gala report results"),
]
LEFT_OUT = {
    r"gala (?:run|train)\b": "committed plans: tests/cli/committed_plans_test.cpp, tests/train",
    r"imagenetc": "ImageNet's pictures",
    r"gala store merge": "stores of other machines",
    r"imagenet_class_index": "a file of the reader's",
    r"labels=names": "weights that name their classes",
}
NETWORKS = {  # weight files by their classes
    7: ["sketch", "photo", "network"], 10: ["cifar", "wrn16_2_cifar10", "assets/wrn16_2_cifar10"], 1000: ["imagenet"]}


def documented(source):
    """(page, line, command) for every gala line, as tools/check-docs reads them."""
    loader = importlib.machinery.SourceFileLoader("check_docs", str(source / "tools/check-docs"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_docs", loader))
    loader.exec_module(module)
    for page in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
        for number, words in module.shell_lines(page.read_text(encoding="utf-8")):
            if words and words[0] == "gala":
                yield page.name, number, shlex.join(words)


def noise(count, seed):
    state, made = seed * 2654435761 + 1, bytearray()
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        made.append(state >> 56)
    return bytes(made)


def write_png(path, seed):
    rows = noise(SIDE * SIDE * 3, seed)
    raw = b"".join(b"\0" + rows[r * SIDE * 3:(r + 1) * SIDE * 3] for r in range(SIDE))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(raw, 1)) + chunk(b"IEND", b""))


def write_npy(path, kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def write_cifar(folder, names, label_bytes):
    folder.mkdir(parents=True)
    for file, name in enumerate(names):
        records = [bytes([i % 10] * label_bytes) + noise(SIDE * SIDE * 3, 100 * file + i) for i in range(20)]
        (folder / name).write_bytes(b"".join(records))


def set_up(folder, source, call):
    for folder_name in ("photos", "sketches"):
        for picture in range(14):
            write_png(folder / folder_name / f"class_{picture % 7}" / f"{picture}.png", picture)
    write_cifar(folder / "data/cifar10", [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"], 1)
    write_cifar(folder / "data/cifar100", ["train.bin", "test.bin"], 2)
    write_npy(folder / "one.npy", "|u1", (1, SIDE, SIDE, 3), noise(SIDE * SIDE * 3, 1))
    write_npy(folder / "fog.npy", "|u1", (20, SIDE, SIDE, 3), noise(20 * SIDE * SIDE * 3, 2))
    write_npy(folder / "labels.npy", "<i8", (20,), struct.pack("<20q", *(i % 10 for i in range(20))))
    (folder / "results").symlink_to(source / "results")
    (folder / "assets").mkdir()
    (folder / "net.pt2").symlink_to(source / "tests/model/fixtures/exported/torch_2_11/net.pt2")
    for classes, names in NETWORKS.items():
        first = folder / f"{names[0]}.safetensors"
        done = call(f"gala adapt --model wide_resnet:depth=10,width=1,classes={classes} --data arrays:images=one.npy "
                    f"--trace steps.jsonl --save-weights {first}")
        if done.returncode:
            sys.exit(done.stderr)
        for name in names[1:]:
            (folder / f"{name}.safetensors").symlink_to(first)


def main():
    program, source = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    failed, lines, left_out = [], set(), set()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def call(line):
            return subprocess.run([program, *shlex.split(line)[1:]], cwd=folder, capture_output=True, text=True,
                                  check=False, stdin=subprocess.DEVNULL, timeout=120)

        set_up(folder, source, call)
        for page, number, line in documented(source):
            reasons = [pattern for pattern in LEFT_OUT if re.search(pattern, line)]
            left_out.update(reasons)
            if reasons:
                continue
            for pattern, small in SMALL:
                line = re.sub(pattern, small, line)
            if line in lines:
                continue
            lines.add(line)
            print(f"{page}:{number}: {line}", flush=True)
            done = call(line)
            if done.returncode:
                failed.append(f"{page}:{number}: {line}\nexit code {done.returncode}: {done.stderr}")
    failed += [f"no line is left out for {pattern} any more" for pattern in LEFT_OUT if pattern not in left_out]
    print("\n".join(failed), file=sys.stderr)
    print(f"{len(lines)} documented commands, {len(failed)} problems")
    return 1 if failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())

"""What kills.py and faults.py share: small data, plans and weights in a folder, and the four long commands."""
import os
import pathlib
import random
import struct
import subprocess

PLAN = """
[plan]
name = "try"
title = "A try"
[run]
protocol = 'continual:generate=yes,images=50,corruption="contrast,brightness",path={assets}/cifar10_test_2000.png'
model = "wide_resnet:depth=10,width=1"
batch_size = 25
backbone = "tiny"
[axes]
loss = ["pseudo_label:beta=0.05", "shot"]
seed = [0, 1]
[[row]]
name = "Source"
select = "none"
norm = "source"
[[row]]
name = "GALA"
select = "gala:window=2"
trace = true
[[row]]
name = "Random"
select = "random"
"""

TRAIN = """
[model]
network = "wide_resnet:depth=10,width=1,classes=10"
[data]
train = "arrays:images=x.npy,labels=y.npy"
evaluation = "arrays:images=x.npy,labels=y.npy"
augmentation = "crop_flip"
[train]
epochs = 4
batch_size = 32
warmup_epochs = 1
checkpoint_every = 2
evaluate_every = 2
keep = "best"
[output]
type = "float16"
"""


def write_npy(path, kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


class Bench:
    """A folder with everything the commands read, and the program."""

    def __init__(self, program, assets, folder, images=160):
        self.program, self.folder = pathlib.Path(program).resolve(), pathlib.Path(folder)
        self.assets = pathlib.Path(assets).resolve()
        self.environment = dict(os.environ, OMP_NUM_THREADS="1", LC_ALL="C")
        self.environment.pop("GALA_TERMINAL", None)
        noise = random.Random(1)
        self.write_images("x.npy", images, noise)
        write_npy(self.folder / "y.npy", "<i8", (images,),
                  struct.pack(f"<{images}q", *(i % 10 for i in range(images))))
        (self.folder / "plan.toml").write_text(PLAN.format(assets=self.assets))
        (self.folder / "train.toml").write_text(TRAIN)
        self.write_images("one.npy", 1, noise)
        self.must("adapt", "--model", "wide_resnet:depth=10,width=1", "--data",
                  "arrays:images=one.npy", "--select", "none", "--save-weights", "source.safetensors")

    def write_images(self, name, count, noise):
        write_npy(self.folder / name, "|u1", (count, 32, 32, 3), noise.randbytes(count * 3072))

    def start(self, *words, **options):
        options = {"cwd": self.folder, "env": self.environment, "stdin": subprocess.DEVNULL,
                   "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        return subprocess.Popen([str(self.program), *map(str, words)], **options)

    def run(self, *words, **options):
        process = self.start(*words, **options)
        process.out, process.err = process.communicate(timeout=300)
        return process

    def must(self, *words, **options):
        process = self.run(*words, **options)
        if process.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}: {process.returncode}\n{process.err}")
        return process

    def read(self, name):
        return (self.folder / name).read_bytes()

    def remove(self, *patterns):
        for pattern in patterns:
            for path in sorted(self.folder.glob(pattern), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()


ADAPT = ("adapt", "--weights", "source.safetensors", "--data", "arrays:images=x.npy,labels=y.npy",
         "--batch-size", "8", "--loss", "shot:beta=0.1", "--optimizer", "adam:rate=0.01", "--norm",
         "running", "--deterministic", "--seed", "5", "--guard",
         "rollback:every=3,horizon=16,to=healthy,displacement=0.05")


def adapt_words(name, saving=True):
    words = ADAPT + ("--events", f"{name}.events", "--trace", f"{name}.jsonl", "--predictions",
                     f"{name}.csv", "--save-weights", f"{name}.safetensors")
    return words + ("--save-state", f"{name}.state", "--save-every", "3") if saving else words


def train_words(name):
    return ("train", "train.toml", "--out", f"{name}.safetensors", "--resume", "--threads", "1")


def run_words(store):
    return ("run", "plan.toml", "--store", store, "--jobs", "2", "--threads", "1", "--deterministic")


def report_words(store, out):
    return ("report", store, "--out", out)

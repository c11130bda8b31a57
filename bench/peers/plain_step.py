"""The same GALA step in Python PyTorch, written the ordinary way: eager, a loop over parameters.

    plain_step.py time DEVICE CASE.. --out FILE   CASE is network/batch/precision; milliseconds a step
    plain_step.py check FOLDER                    compares with what `step_bench` exported
"""
import argparse
import json
import math
import statistics
import struct
import time

import torch
from torch.nn import functional as F

import networks


class PlainGala:
    """Pseudo-label loss, Adam, single layer, threshold .75, window 20, opening scale .01."""

    def __init__(self, model, rate, window=20, threshold=0.75, opening_scale=0.01, beta=0.9):
        self.model, self.rate, self.window = model, rate, window
        self.threshold, self.opening_scale, self.beta = threshold, opening_scale, beta
        self.layers = list(networks.layers_of(model).values())
        parameters = [p for layer in self.layers for p in layer]
        self.first = {p: torch.zeros_like(p) for p in parameters}
        self.second = {p: torch.zeros_like(p) for p in parameters}
        self.shift = {p: torch.zeros_like(p) for p in parameters}
        self.steps = 0

    def step(self, images):
        logits = self.model(images)
        confidence, label = F.softmax(logits, 1).max(1)
        kept = confidence > self.beta
        loss = F.cross_entropy(logits[kept], label[kept]) if kept.any() else logits.sum() * 0
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        with torch.no_grad():
            cosines = self.adapt()
        return logits.detach(), loss.detach(), cosines

    def adapt(self):
        self.steps += 1
        opens = (self.steps - 1) % self.window == 0
        step_size = self.rate / (1 - 0.9 ** self.steps)
        correction = math.sqrt(1 - 0.999 ** self.steps)
        updates, cosines = {}, []
        for layer in self.layers:
            a = c = t = 0
            for p in layer:
                if opens:
                    self.shift[p].zero_()
                first = self.first[p].mul_(0.9).add_(p.grad, alpha=0.1)
                second = self.second[p].mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                u = updates[p] = -step_size * first / (second.sqrt() / correction + 1e-8)
                wide, shift = u.double(), self.shift[p].double()
                a = a + (wide * wide).sum()
                c = c + (wide * shift).sum()
                t = t + (shift * shift).sum()
            a, c, t = a.item(), c.item(), t.item()
            cosines.append((a + c) / math.sqrt(a * max(0.0, a + 2 * c + t)) if a > 0 else 0.0)
        if opens:
            chosen, scale = self.layers, self.opening_scale
        else:
            best = max(range(len(cosines)), key=lambda i: cosines[i])
            chosen = [self.layers[best]] if cosines[best] > self.threshold else []
            scale = 1.0
        for layer in chosen:
            for p in layer:
                p.add_(updates[p], alpha=scale)
                self.shift[p].add_(updates[p], alpha=scale)
        return cosines


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    types = {"F32": torch.float32, "I64": torch.int64}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = torch.frombuffer(
            bytearray(data[begin:end]), dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def check(folder):
    """Losses and cosines of five steps on the same weights and images."""
    with open(f"{folder}/steps.json") as file:
        told = json.load(file)
    model = networks.make(told["network"])
    model.load_state_dict(read_safetensors(f"{folder}/weights.safetensors"), strict=False)
    model.eval()
    images = read_safetensors(f"{folder}/images.safetensors")["images"]
    plain = PlainGala(model, told["rate"], beta=told["beta"])
    names = list(networks.layers_of(model))
    for number, step in enumerate(told["steps"]):
        _, loss, cosines = plain.step(images)
        if abs(loss.item() - step["loss"]) > 1e-3 * abs(step["loss"]) + 1e-5:
            raise SystemExit(f"step {number + 1}: loss {loss.item()} here, {step['loss']} there")
        for name, cosine in zip(names, cosines):
            if abs(cosine - step["cosines"][name]) > 2e-3:
                raise SystemExit(f"step {number + 1}, {name}: cosine {cosine} here, "
                                 f"{step['cosines'][name]} there")
    print(f"the plain step agrees over {len(told['steps'])} steps and {len(names)} layers")


def measure(case, device):
    network, batch, precision = case.split("/")
    torch.manual_seed(0)
    tf32 = precision != "float32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    wide = network.startswith("wrn")
    size = 32 if wide else 224
    best = None
    formats = [torch.channels_last]
    if device == "cpu":
        formats.append(torch.contiguous_format)  # the quicker one counts
    for memory_format in formats:
        model = networks.make(network).to(device, memory_format=memory_format)
        model.train() if wide else model.eval()
        if wide:
            networks.use_batch_statistics(model)
        gala = PlainGala(model, 1e-7, beta=0)  # as in step_bench: every answer counts
        images = torch.rand(int(batch), 3, size, size, device=device)
        images = images.contiguous(memory_format=memory_format)
        times = []
        repeats = 8 if device == "cpu" else 25
        for i in range(repeats + 3):
            start = time.perf_counter()
            gala.step(images)
            if device == "cuda":
                torch.cuda.synchronize()
            if i >= 3:
                times.append(1e3 * (time.perf_counter() - start))
        median = statistics.median(times)
        best = median if best is None else min(best, median)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    timing = commands.add_parser("time")
    timing.add_argument("device")
    timing.add_argument("cases", nargs="+")
    timing.add_argument("--out", required=True)
    checking = commands.add_parser("check")
    checking.add_argument("folder")
    arguments = parser.parse_args()
    if arguments.command == "check":
        return check(arguments.folder)
    result = {case: measure(case, arguments.device) for case in arguments.cases}
    with open(arguments.out, "w") as file:
        json.dump({"milliseconds": result, "torch": torch.__version__}, file)


if __name__ == "__main__":
    main()

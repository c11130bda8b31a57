"""tools/convert_imagenet_weights.py: made-up packages go in, and what comes out answers as they do."""

import json
import pathlib
import pickle
import struct
import sys
import tempfile
import unittest

import numpy as np
import torch
from torch.nn import functional as F

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
import convert_imagenet_weights as convert  # noqa: E402
from make_model_fixtures import ResNet  # noqa: E402


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = json.loads(header.pop("__metadata__")["gala"])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors, metadata


def keras_layers():
    """(convolution, norm, kernel size, inputs, outputs) of Keras' ResNet50."""
    yield "conv1", "bn_conv1", 7, 3, 64
    inside = 64
    for stage, count, width in ((2, 3, 64), (3, 4, 128), (4, 6, 256), (5, 3, 512)):
        for block in "abcdef"[:count]:
            name = f"{stage}{block}_branch"
            yield f"res{name}2a", f"bn{name}2a", 1, inside, width
            yield f"res{name}2b", f"bn{name}2b", 3, width, width
            yield f"res{name}2c", f"bn{name}2c", 1, width, 4 * width
            if block == "a":
                yield f"res{name}1", f"bn{name}1", 1, inside, 4 * width
            inside = 4 * width


def make_keras(generator):
    weights = {}
    for convolution, norm, size, inside, outside in keras_layers():
        scale = np.sqrt(2 / (size * size * inside))
        weights[convolution + "/kernel"] = generator.normal(0, scale, (size, size, inside, outside))
        weights[convolution + "/bias"] = generator.normal(0, 0.1, outside)
        weights[norm + "/gamma"] = generator.uniform(0.3, 0.6, outside)
        weights[norm + "/beta"] = generator.normal(0, 0.1, outside)
        weights[norm + "/moving_mean"] = generator.normal(0, 0.1, outside)
        weights[norm + "/moving_variance"] = generator.uniform(0.5, 2, outside)
    # The first norm sees inputs up to 255; one of its channels hardly varies, so that epsilon counts.
    weights["bn_conv1/moving_variance"] = generator.uniform(1e3, 1e4, 64)
    weights["bn_conv1/moving_variance"][5] = 1e-2
    weights["fc1000/kernel"] = generator.normal(0, 0.02, (2048, 1000))
    weights["fc1000/bias"] = generator.normal(0, 0.1, 1000)
    return {name: values.astype(np.float32) for name, values in weights.items()}


def write_package(folder, weights):
    (folder / "ResNet50").mkdir(parents=True)
    (folder / "assets").mkdir()
    names = list(weights)
    data = b"".join(weights[name].astype("<f4").tobytes() for name in names)
    middle = len(data) // 3 + 2  # shards end anywhere, even inside a number
    for i, part in enumerate((data[:middle], data[middle:])):
        (folder / "ResNet50" / f"shard{i}").write_bytes(part)
    manifest = [{"paths": ["shard0", "shard1"],
                 "weights": [{"name": name, "shape": list(weights[name].shape), "dtype": "float32"}
                             for name in names]}]
    (folder / "ResNet50" / "model.json").write_text(json.dumps({"weightsManifest": manifest}))
    labels = {str(i): f"class {i}" for i in range(1000)}
    (folder / "assets" / "labels.json").write_text(json.dumps(labels))


def keras_forward(weights, images):
    """The network in its own layout: BGR from 0 to 255 less the mean, biases, epsilon 1e-3."""
    w = {name: torch.from_numpy(values).double() for name, values in weights.items()}

    def layer(x, convolution, norm, stride=1, padding=0):
        kernel = w[convolution + "/kernel"].permute(3, 2, 0, 1)
        x = F.conv2d(x, kernel, w[convolution + "/bias"], stride, padding)
        return F.batch_norm(x, w[norm + "/moving_mean"], w[norm + "/moving_variance"],
                            w[norm + "/gamma"], w[norm + "/beta"], False, 0, 1e-3)

    x = images.flip(1) - torch.tensor([103.939, 116.779, 123.68]).double()[:, None, None]
    x = F.max_pool2d(F.relu(layer(x, "conv1", "bn_conv1", 2, 3)), 3, 2, 1)
    for stage, count in ((2, 3), (3, 4), (4, 6), (5, 3)):
        for block in "abcdef"[:count]:
            name = f"{stage}{block}_branch"
            stride = 2 if block == "a" and stage > 2 else 1
            y = F.relu(layer(x, f"res{name}2a", f"bn{name}2a", stride))
            y = F.relu(layer(y, f"res{name}2b", f"bn{name}2b", 1, 1))
            y = layer(y, f"res{name}2c", f"bn{name}2c")
            x = F.relu(y + (layer(x, f"res{name}1", f"bn{name}1", stride) if block == "a" else x))
    return x.mean((2, 3)) @ w["fc1000/kernel"] + w["fc1000/bias"]


class ConvertTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def test_resnet50_answers_as_the_keras_network(self):
        weights = make_keras(np.random.default_rng(0))
        write_package(self.folder / "package", weights)
        convert.convert_resnet50(self.folder / "package", self.folder / "out")
        tensors, metadata = read_safetensors(self.folder / "out")
        self.assertEqual(metadata["model"], "resnet50:classes=1000,stride=first,norm_epsilon=0.001")
        self.assertEqual(metadata["classes"][:2], ["class 0", "class 1"])
        # The first convolution keeps the scale it had.
        self.assertLess(abs(tensors["conv1.weight"].std().item() / weights["conv1/kernel"].std() - 1), 0.1)

        network = ResNet(50, stride_first=True, eps=1e-3)
        self.assertEqual(set(network.state_dict()), set(tensors))
        network.load_state_dict(tensors)
        images = torch.randint(256, (2, 3, 64, 64), generator=torch.Generator().manual_seed(1)).double()
        mean, std = (torch.tensor(metadata["preprocessing"][key]).double()[:, None, None]
                     for key in ("mean", "std"))
        with torch.no_grad():
            expected = keras_forward(weights, images)
            answers = network.double()((images / 255 - mean) / std)[1]
        self.assertLess((answers - expected).abs().max().item(), 1e-5 * expected.abs().max().item())

    def test_resnet18_reads_a_pickled_state_dict(self):
        base = torch.arange(24.0)
        state = torch.nn.Module().state_dict()
        state["a.weight"] = base[4:].view(4, 5).t()  # a view with an offset and strides of its own
        state["b.bias"] = base[:3].clone()
        state["b.num_batches_tracked"] = torch.tensor(7)
        (self.folder / "in").write_bytes(pickle.dumps(state))
        convert.convert_resnet18(self.folder / "in", self.folder / "out")
        tensors, metadata = read_safetensors(self.folder / "out")
        self.assertEqual(list(tensors), ["a.weight", "b.bias"])
        self.assertTrue(tensors["a.weight"].equal(state["a.weight"]))
        self.assertTrue(tensors["b.bias"].equal(state["b.bias"]))
        self.assertEqual(metadata["model"], "resnet18:classes=1000")

    def test_resnet18_executes_nothing(self):
        class Attack:
            def __reduce__(self):
                return eval, ("open('touched', 'w')",)

        (self.folder / "in").write_bytes(pickle.dumps({"a": Attack()}))
        with self.assertRaisesRegex(pickle.UnpicklingError, "eval has no place"):
            convert.convert_resnet18(self.folder / "in", self.folder / "out")
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main()

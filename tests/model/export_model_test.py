"""tools/export_model.py on a network in a file of its own, as a user would call it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "export_model.py"

NETWORK = """
import itertools
import torch
from torch import nn

calls = itertools.count()

def make():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Dropout(0.5), nn.Linear(4, 2))

class Restless(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = make()

    def forward(self, x):
        return self.net(x) + next(calls)

def restless():
    return Restless()

class Branch(Restless):
    def forward(self, x):
        y = self.net(x)
        return y if y.sum() > 0 else 2 * y

def branch():
    return Branch()

def maps():
    return make()[:4]

def nothing():
    return None

def raises():
    raise ValueError("no data")
"""


class ExportModel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        (self.path / "mynet.py").write_text(NETWORK)
        (self.path / "names.txt").write_text("cat\n\ndog\n")

    def tearDown(self):
        self.folder.cleanup()

    def call(self, *words):
        return subprocess.run([sys.executable, str(TOOL), *words], cwd=self.path, capture_output=True,
                              text=True, timeout=300)

    def refuses(self, part, *words):
        ending = self.call(*words)
        self.assertEqual(ending.returncode, 2)
        self.assertNotIn("Traceback", ending.stderr)
        self.assertIn(part, ending.stderr)
        self.assertFalse((self.path / "net.pt2").exists())

    def test_writes_weights_preprocessing_and_classes(self):
        import torch

        namespace = {}
        exec(NETWORK, namespace)
        state = namespace["make"]().state_dict()
        state["0.weight"] += 1
        torch.save({"state_dict": state}, self.path / "mynet.pth")
        ending = self.call("mynet.py:make", "net.pt2", "--weights", "mynet.pth", "--size", "16", "--mean", "0.1",
                           "0.2", "0.3", "--classes", "names.txt")
        self.assertEqual(ending.returncode, 0, ending.stderr)
        with zipfile.ZipFile(self.path / "net.pt2") as archive:
            name = next(n for n in archive.namelist() if n.endswith("extra/gala.json"))
            metadata = json.loads(archive.read(name))
        self.assertEqual(metadata["classes"], ["cat", "dog"])
        self.assertEqual(metadata["preprocessing"]["size"], 16)
        self.assertEqual(metadata["preprocessing"]["mean"], [0.1, 0.2, 0.3])
        self.assertEqual(metadata["preprocessing"]["std"], [0.229, 0.224, 0.225])
        program = torch.export.load(self.path / "net.pt2")
        self.assertTrue(torch.equal(program.state_dict["0.weight"], state["0.weight"]))
        self.assertEqual(program.module()(torch.zeros(5, 3, 16, 16)).shape, (5, 2))

    def test_says_what_is_wrong(self):
        self.refuses("must end in .pt2", "mynet.py:make", "net.pt")
        self.refuses("has no function mak", "mynet.py:mak", "net.pt2")
        self.refuses("is none of torchvision:NAME", "mynet", "net.pt2")
        self.refuses("nowhere.py is no Python file", "nowhere.py:make", "net.pt2")
        self.refuses("there is no folder nowhere", "mynet.py:make", "nowhere/net.pt2")
        self.refuses("nowhere.txt is no file", "mynet.py:make", "net.pt2", "--classes", "nowhere.txt")
        self.refuses("nowhere.pth is no file, and neither", "mynet.py:make", "net.pt2", "--weights", "nowhere.pth")
        self.refuses("returned no torch.nn.Module but NoneType", "mynet.py:nothing", "net.pt2")
        self.refuses("mynet.py:raises: ValueError: no data (line", "mynet.py:raises", "net.pt2")
        (self.path / "broken.py").write_text("import torch\n1 / 0\n")
        self.refuses("broken.py cannot be imported: ZeroDivisionError: division by zero (line 2)", "broken.py:make",
                     "net.pt2")
        self.refuses("--size must be at least 1, not 0", "mynet.py:make", "net.pt2", "--size", "0")
        self.refuses("--std must be numbers greater than 0", "mynet.py:make", "net.pt2", "--std", "1", "0", "1")
        self.refuses("gives [3, 4, 1, 1]", "mynet.py:maps", "net.pt2", "--size", "16")
        self.refuses("PyTorch cannot export this network", "mynet.py:branch", "net.pt2", "--size", "16")
        (self.path / "three.txt").write_text("a\nb\nc\n")
        self.refuses("there are 3 names of classes, and the network has 2", "mynet.py:make", "net.pt2", "--size", "16",
                     "--classes", "three.txt")
        self.refuses("names.txt holds no state dict of this network", "mynet.py:make", "net.pt2", "--weights",
                     "names.txt")

    def test_says_that_torchvision_is_for_another_torch(self):
        (self.path / "torchvision.py").write_text(
            "raise RuntimeError('operator torchvision::nms does not exist')\n")
        environment = {**os.environ, "PYTHONPATH": str(self.path)}
        ending = subprocess.run([sys.executable, str(TOOL), "torchvision:resnet18", "net.pt2"], cwd=self.path,
                                capture_output=True, text=True, timeout=300, env=environment)
        self.assertEqual(ending.returncode, 2)
        self.assertTrue(ending.stderr.startswith("export_model: this torchvision is for another build of torch"))

    def test_writes_nothing_that_answers_otherwise(self):
        self.refuses("does not answer as the network itself does", "mynet.py:restless", "net.pt2", "--size", "16")


if __name__ == "__main__":
    unittest.main()

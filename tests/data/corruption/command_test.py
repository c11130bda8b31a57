#!/usr/bin/env python3
"""`gala corrupt` from the outside: what it writes, and what it says to wrong words.

    command_test.py PATH_TO_GALA
"""
import ast
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

GALA = ""


def write_npy(path, shape, data):
    header = repr({"descr": "|u1", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def read_npy(path):
    content = path.read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\x00"
    length = struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10:10 + length].decode())
    return header["descr"], header["shape"], content[10 + length:]


class Corrupt(unittest.TestCase):
    COUNT = 12

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.images = random.Random(1).randbytes(self.COUNT * 3072)
        self.labels = bytes(i * 3 % 10 for i in range(self.COUNT))
        write_npy(self.folder / "x.npy", (self.COUNT, 32, 32, 3), self.images)
        write_npy(self.folder / "y.npy", (self.COUNT,), self.labels)

    def tearDown(self):
        self.temporary.cleanup()

    def gala(self, *words, data="arrays:images=x.npy,labels=y.npy"):
        return subprocess.run([GALA, "corrupt", "--data", data, *words], cwd=self.folder, text=True,
                              capture_output=True, timeout=120)

    def made(self, *words):
        done = self.gala(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, *parts, words, data="arrays:images=x.npy,labels=y.npy"):
        before = sorted(self.folder.iterdir())
        done = self.gala(*words, data=data)
        self.assertEqual(done.returncode, 2, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_one_severity_fills_a_file(self):
        grey = bytes([100] * 3072)
        write_npy(self.folder / "x.npy", (1, 32, 32, 3), grey)
        write_npy(self.folder / "y.npy", (1,), b"\x04")
        self.made("--corruption", "brightness", "--severity", "2", "--out", "b.npy")
        self.assertEqual(read_npy(self.folder / "b.npy"), ("|u1", (1, 32, 32, 3), bytes([125] * 3072)))

    def test_all_severities_fill_a_folder_as_published(self):
        self.made("--corruption", "fog,contrast", "--severity", "all", "--out", "set")
        names = sorted(path.name for path in (self.folder / "set").iterdir())
        self.assertEqual(names, ["contrast.npy", "fog.npy", "labels.npy"])
        kind, shape, fog = read_npy(self.folder / "set/fog.npy")
        self.assertEqual((kind, shape), ("|u1", (5 * self.COUNT, 32, 32, 3)))
        self.assertEqual(read_npy(self.folder / "set/labels.npy"), ("|u1", (5 * self.COUNT,), self.labels * 5))
        self.made("--corruption", "fog", "--severity", "3", "--out", "fog3.npy")
        begin = 2 * self.COUNT * 3072
        self.assertEqual(read_npy(self.folder / "fog3.npy")[2], fog[begin:begin + self.COUNT * 3072])

    def test_threads_change_nothing_and_seeds_do(self):
        for name, words in {"a": ["--threads", "1"], "b": ["--threads", "3"], "c": ["--seed", "5"]}.items():
            self.made("--corruption", "gaussian_noise", "--severity", "5", "--out", f"{name}.npy", *words)
        a, b, c = (read_npy(self.folder / f"{name}.npy")[2] for name in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_data_without_labels_is_said(self):
        done = self.gala("--corruption", "fog", "--severity", "1", "--out", "set", data="arrays:images=x.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no labels", done.stderr)
        self.assertEqual([path.name for path in (self.folder / "set").iterdir()], ["fog.npy"])

    def test_wrong_words_are_named(self):
        out = ["--out", "o.npy"]
        self.refused("fogg", "fog", words=["--corruption", "fogg", "--severity", "1", *out])
        for severity in ("0", "6", "x", "1,2"):
            self.refused("severity", severity, words=["--corruption", "fog", "--severity", severity, *out])
        self.refused("o.npy", "15", "folder", words=["--corruption", "all", "--severity", "1", *out])
        self.refused("--out", "no folder", words=["--corruption", "fog", "--severity", "1", "--out", "no/where.npy"])
        self.refused("--threads", words=["--corruption", "fog", "--severity", "1", "--threads", "0", *out])
        self.refused("none.npy", words=["--corruption", "fog", "--severity", "1", *out], data="arrays:images=none.npy")

    def test_larger_pictures_are_cropped_and_said_to_be(self):
        # Grey 120 stays grey whatever is cropped; contrast pulls to the mean, and JPEG keeps flat areas.
        write_npy(self.folder / "x.npy", (2, 300, 260, 3), bytes([120] * (2 * 300 * 260 * 3)))
        write_npy(self.folder / "y.npy", (2,), b"\x04\x05")
        done = self.made("--corruption", "contrast", "--severity", "5", "--out", "set")
        self.assertIn("ImageNet-C", done.stdout)
        self.assertIn("256", done.stdout)
        self.assertEqual(read_npy(self.folder / "set/contrast.npy"),
                         ("|u1", (2, 224, 224, 3), bytes([120] * (2 * 224 * 224 * 3))))
        self.made("--corruption", "brightness", "--severity", "1", "--quality", "0", "--out", "b.npy")
        self.assertEqual(set(read_npy(self.folder / "b.npy")[2]), {145})  # 120 + .1 * 255 = 145.5

    def test_small_pictures_are_enlarged_where_it_is_asked_for(self):
        write_npy(self.folder / "x.npy", (1, 2, 3, 3), bytes([9] * 18))
        write_npy(self.folder / "y.npy", (1,), b"\x00")
        out = ["--corruption", "contrast", "--severity", "1", "--out", "o.npy"]
        self.refused("x.npy", "2x3", "--set imagenet", words=out)
        self.made("--set", "imagenet", *out)
        self.assertEqual(read_npy(self.folder / "o.npy")[1], (1, 224, 224, 3))
        self.refused("--set", "auto|cifar|imagenet", words=["--set", "tiny", *out])
        self.refused("--quality", "101", words=["--quality", "101", "--set", "imagenet", *out[:4], "--out", "p.npy"])

    def test_pictures_of_another_size_are_refused(self):
        write_npy(self.folder / "x.npy", (2, 28, 28, 3), bytes(2 * 28 * 28 * 3))
        self.refused("x.npy", "28x28", "32x32", data="arrays:images=x.npy",
                     words=["--corruption", "fog", "--severity", "1", "--out", "o.npy"])


if __name__ == "__main__":
    GALA = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()

"""gala_tta.corrupt: equal to the program, whatever the pictures come in."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
import threading
import time

import gala_tta
import numpy as np
import program_truth
import pytest
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

pytest.importorskip("gala_tta._corrupt", reason="built without libjpeg", exc_type=ImportError)
from gala_tta import corrupt

WRONG = gala_tta.Error


@pytest.fixture(scope="module")
def images() -> NDArray[np.uint8]:
    return program_truth.pictures(20)


def hashes(images: NDArray[np.uint8]) -> dict[str, list[str]]:
    return {
        name: [
            hashlib.sha256(
                corrupt.apply(images, name, severity, seed=program_truth.SEED).tobytes()
            ).hexdigest()
            for severity in corrupt.SEVERITIES
        ]
        for name in corrupt.NAMES
    }


def test_every_corruption_has_the_bytes_that_the_program_gave(images: NDArray[np.uint8]) -> None:
    assert hashes(images) == json.loads(program_truth.GOLDEN.read_text())["corruptions"]


@pytest.mark.skipif(not program_truth.program(), reason="GALA_PROGRAM is not set")
def test_every_corruption_has_the_bytes_that_the_program_gives(images: NDArray[np.uint8]) -> None:
    assert hashes(images) == program_truth.corruption_hashes()


def test_the_names_are_those_of_the_benchmark_and_four_more() -> None:
    assert len(corrupt.NAMES) == 19
    assert len(corrupt.BENCHMARK) == 15
    assert corrupt.BENCHMARK + corrupt.EXTRA == corrupt.NAMES
    assert corrupt.NAMES[:2] == ("gaussian_noise", "shot_noise")
    assert set(corrupt.describe()) == set(corrupt.NAMES)


def test_layout_and_type_come_back_as_they_were(images: NDArray[np.uint8]) -> None:
    made = corrupt.apply(images, "snow")
    assert made.shape == images.shape
    assert made.dtype == np.uint8
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    assert np.array_equal(corrupt.apply(planes, "snow"), made.transpose(0, 3, 1, 2))
    tensor = corrupt.apply(torch.from_numpy(planes), "snow")
    assert isinstance(tensor, torch.Tensor)
    assert torch.equal(tensor, torch.from_numpy(made).permute(0, 3, 1, 2))
    # A view that is not contiguous, and one picture alone.
    view = torch.from_numpy(images).permute(0, 3, 1, 2)
    assert torch.equal(corrupt.apply(view, "snow"), tensor)
    assert np.array_equal(corrupt.apply(images[3], "snow", first=3), made[3])


def test_large_pictures_have_constants_of_their_own(images: NDArray[np.uint8]) -> None:
    # 120 + .1 * 255 = 145.5 by ImageNet's first severity of brightness, 120 + .05 * 255 by CIFAR's.
    large = np.full((2, 224, 224, 3), 120, np.uint8)
    assert np.array_equal(corrupt.apply(large, "brightness", 1), np.full_like(large, 145))
    small = np.full((2, 32, 32, 3), 120, np.uint8)
    assert np.array_equal(corrupt.apply(small, "brightness", 1), np.full_like(small, 132))
    # One transform takes both, and layouts as they come.
    transform = corrupt.Corruption("gaussian_noise", 2)
    planes = np.ascontiguousarray(large.transpose(0, 3, 1, 2))
    made = transform(planes, index=[0, 1])
    assert np.array_equal(made.transpose(0, 2, 3, 1), corrupt.apply(large, "gaussian_noise", 2))
    assert transform(images).shape == images.shape


def test_a_set_in_parts_is_the_set(images: NDArray[np.uint8]) -> None:
    whole = corrupt.apply(images, "gaussian_noise", 3, seed=1)
    parts = [corrupt.apply(images[i : i + 7], "gaussian_noise", 3, 1, first=i) for i in (0, 7, 14)]
    assert np.array_equal(np.concatenate(parts), whole)
    for threads in (1, 2, 5):
        again = corrupt.apply(images, "gaussian_noise", 3, seed=1, threads=threads)
        assert np.array_equal(again, whole)
    assert not np.array_equal(corrupt.apply(images, "gaussian_noise", 3, seed=2), whole)
    assert corrupt.apply(images[:0], "gaussian_noise").shape == (0, 32, 32, 3)


def test_the_given_pictures_stay_as_they_are(images: NDArray[np.uint8]) -> None:
    before = images.copy()
    corrupt.apply(images, "fog")
    corrupt.Corruption("fog")(images)
    assert np.array_equal(images, before)


def test_wrong_words_are_answered(images: NDArray[np.uint8]) -> None:
    with pytest.raises(WRONG, match=r'no corruption "fogg".*fog'):
        corrupt.apply(images, "fogg")
    with pytest.raises(WRONG, match="severity cannot be 6"):
        corrupt.apply(images, "fog", 6)
    with pytest.raises(ValueError, match=r"shape \[1, 64, 64, 3\].*32 x 32"):
        corrupt.apply(np.zeros((1, 64, 64, 3), np.uint8), "fog")
    with pytest.raises(TypeError, match=r"float32.*uint8"):
        corrupt.apply(images.astype(np.float32), "fog")
    with pytest.raises(TypeError, match=r"torch.float32.*uint8"):
        corrupt.apply(torch.zeros(1, 3, 32, 32), "fog")
    with pytest.raises(TypeError, match="str cannot be corrupted"):
        corrupt.Corruption("fog")("picture")
    with pytest.raises(TypeError, match="list cannot be corrupted"):
        corrupt.apply([1, 2], "fog")  # type: ignore[type-var]
    with pytest.raises(TypeError, match="named by one of NAMES, not by 5"):
        corrupt.apply(images, 5)  # type: ignore[arg-type]
    for severity in ("x", 2.5):
        with pytest.raises(TypeError, match="severity must be a whole number"):
            corrupt.apply(images, "fog", severity)  # type: ignore[arg-type]
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="seed must be from 0 to 18446744073709551615"):
            corrupt.apply(images, "fog", 1, seed)
    with pytest.raises(WRONG, match="threads cannot be -1"):
        corrupt.apply(images, "fog", threads=-1)
    with pytest.raises(ValueError, match="2 numbers for 20 pictures"):
        corrupt.Corruption("fog")(images, index=[1, 2])


def test_frost_takes_photographs(images: NDArray[np.uint8]) -> None:
    photographs = [np.full((170, 180, 3), level, np.uint8) for level in (90, 200)]
    made = corrupt.apply(images, "frost", photographs=photographs)
    assert not np.array_equal(made, corrupt.apply(images, "frost"))
    transform = corrupt.Corruption("frost", photographs=photographs)
    assert np.array_equal(transform(images, index=range(20)), made)
    with pytest.raises(WRONG, match="165"):
        corrupt.apply(images, "frost", photographs=[np.zeros((40, 40, 3), np.uint8)])


def test_a_transform_draws_by_number_or_by_the_picture(images: NDArray[np.uint8]) -> None:
    transform = corrupt.Corruption("gaussian_noise", 3, seed=5)
    by_number = corrupt.apply(images, "gaussian_noise", 3, seed=5)
    assert np.array_equal(transform(images[4], index=4), by_number[4])
    assert np.array_equal(transform(images, index=range(20)), by_number)
    # Without a number: the same picture is always drawn alike, in any batch, layout and process.
    alone = transform(images[4])
    assert np.array_equal(transform(images)[4], alone)
    assert torch.equal(
        transform(torch.from_numpy(images[4]).permute(2, 0, 1)),
        torch.from_numpy(alone).permute(2, 0, 1),
    )
    assert np.array_equal(pickle.loads(pickle.dumps(transform))(images[4]), alone)
    # Other pictures, other noise.
    noise = transform(images).astype(int) - images
    assert not np.array_equal(noise[0], noise[1])
    assert repr(transform) == "Corruption('gaussian_noise', severity=3, seed=5)"


class Photo(torch.Tensor):
    """A kind of tensor, as torchvision's are."""


def test_a_kind_of_tensor_stays_of_its_kind(images: NDArray[np.uint8]) -> None:
    photo = torch.from_numpy(images[0]).permute(2, 0, 1).as_subclass(Photo)
    assert type(corrupt.Corruption("fog")(photo)) is Photo


class Pictures(Dataset[torch.Tensor]):
    def __init__(self, images: NDArray[np.uint8]) -> None:
        self.images, self.transform = images, corrupt.Corruption("gaussian_noise", 3)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.transform(self.images[index]))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_make_the_same_pictures(images: NDArray[np.uint8], method: str) -> None:
    data = Pictures(images)
    alone = torch.cat(list(DataLoader(data, batch_size=5)))
    loader = DataLoader(data, batch_size=5, num_workers=2, multiprocessing_context=method)
    assert torch.equal(torch.cat(list(loader)), alone)


def test_a_transform_takes_pil_images(images: NDArray[np.uint8]) -> None:
    image_module = pytest.importorskip("PIL.Image")
    made = corrupt.Corruption("fog", 3)(image_module.fromarray(images[0]))
    assert np.array_equal(np.asarray(made), corrupt.Corruption("fog", 3)(images[0]))


def test_python_goes_on_meanwhile() -> None:
    images = program_truth.pictures(1024)
    done = threading.Event()
    ticks = []

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=tick, daemon=True)
    other.start()
    begin = time.perf_counter()
    try:
        for _ in range(3):
            # One call of C++ for all: it would let nobody run if it held the lock.
            corrupt.apply(images, "brightness", threads=1)
    finally:
        end = time.perf_counter()
        done.set()
        other.join()
    during = [t for t in ticks if begin < t < end]
    assert len(during) > 10 * (end - begin) / 0.1


def test_a_build_without_libjpeg_says_so() -> None:
    code = """if True:
        import sys
        import gala_tta
        sys.modules["gala_tta._corrupt"] = None
        print(gala_tta.streams.make("mixed", {"fog": 5}))
        gala_tta.corrupt
    """
    ending = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "5 pictures" in ending.stdout
    assert "ImportError: gala_tta.corrupt needs libjpeg" in ending.stderr


def test_the_heart_itself_needs_no_libjpeg() -> None:
    ldd = shutil.which("ldd")
    if ldd is None:
        pytest.skip("there is no ldd")
    linked = subprocess.run(
        [ldd, gala_tta._core.__file__], capture_output=True, text=True, check=True
    )
    assert "libc.so" in linked.stdout
    assert "jpeg" not in linked.stdout


def test_it_can_be_interrupted() -> None:
    code = """if True:
        import os, signal, threading, time
        import numpy as np
        from gala_tta import corrupt
        images = np.zeros((30_000, 32, 32, 3), np.uint8)
        begin = time.perf_counter()
        corrupt.apply(images, "elastic_transform", threads=1)
        whole = time.perf_counter() - begin
        threading.Timer(0.1 * whole, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.perf_counter()
        try:
            corrupt.apply(images, "elastic_transform", threads=1)
        except KeyboardInterrupt:
            print("stopped", (time.perf_counter() - begin) / whole)
    """
    ending = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    word, share = ending.stdout.split()
    assert word == "stopped"
    # In the middle of the call, not behind it.
    assert float(share) < 0.7

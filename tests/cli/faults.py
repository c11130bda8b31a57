#!/usr/bin/env python3
"""A full disk, folders that cannot be written, files that shrink while they are read, little memory, two programs on
one store, SIGTERM and closed pipes: the program says what is wrong, ends as it should, and loses nothing.

    faults.py --program build/cli/gala --assets assets [--only full_disk]

What this machine does not allow (mounting, being another user) is left out, and that is said.
"""
import argparse
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import fault_bench as fb
from kills import records_of, same

NOBODY = 65534


def expect_error(ended, code, *parts):
    """A line that begins with `error:`, no signal, no trace of the inside."""
    assert ended.returncode == code, f"code {ended.returncode}, not {code}: {ended.err}"
    last = ended.err.strip().splitlines()[-1]
    assert last.startswith("error: "), ended.err
    for part in parts:
        assert part in ended.err, f"{part!r} is not in {ended.err}"


class Mount:
    """A small disk of its own in the folder."""

    def __init__(self, bench, size):
        self.path = bench.folder / "disk"
        self.path.mkdir(exist_ok=True)
        self.call("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.path)

    def call(self, *words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Impossible(done.stderr.strip())

    def resize(self, size):
        self.call("mount", "-o", f"remount,size={size}", self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", str(self.path)], check=False)


class Impossible(Exception):
    """This machine does not let us try it."""


def full_disk(bench):
    """Everything is written to a disk that has no room for it; with room, the same command goes on."""
    straight = bench.must(*fb.adapt_words("a", saving=False))
    with Mount(bench, "160k") as disk:  # room for the lines, and not for the state
        ended = bench.run(*fb.adapt_words("disk/b"))
        expect_error(ended, 1, "is the disk full?")
        left = {path.name for path in disk.path.iterdir()}
        assert not any(".partial." in name for name in left), left
        disk.resize("16m")
        resume = ("--resume", "disk/b.state") if "b.state" in left else ()
        assert bench.must(*fb.adapt_words("disk/b"), *resume).out == straight.out
        same(bench, (".jsonl", ".csv", ".events", ".safetensors"), "a", "disk/b")
    with Mount(bench, "32k") as disk:
        bench.must(*fb.train_words("t"))
        expect_error(bench.run(*fb.train_words("disk/t")), 1, "is the disk full?")
        disk.resize("16m")
        bench.must(*fb.train_words("disk/t"))
        assert bench.read("disk/t.safetensors") == bench.read("t.safetensors")
    with Mount(bench, "28k") as disk:  # for some of the records
        bench.must(*fb.run_words("s"))
        expect_error(bench.run(*fb.run_words("disk/s")), 1, "cannot be written")
        disk.resize("16m")
        bench.must(*fb.run_words("disk/s"))
        assert records_of(bench, "disk/s") == records_of(bench, "s")
        bench.must("store", "check", "disk/s")
    with Mount(bench, "64k"):
        bench.must(*fb.report_words("s", "page.html"))
        expect_error(bench.run(*fb.report_words("s", "disk/page.html")), 1, "is the disk full?")
        assert not list((bench.folder / "disk").iterdir()), "half a page"


def as_nobody():
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def read_only(bench):
    """A folder that belongs to somebody else: said before any work, and nothing is left in it."""
    if os.geteuid() == 0:
        options = {"preexec_fn": as_nobody}
        os.chmod(bench.folder, 0o755)
        tried = subprocess.run([bench.program, "--version"], capture_output=True, check=False, **options)
        if tried.returncode:
            raise Impossible("another user cannot run the program")
    else:
        options = {}
    closed = bench.folder / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for words in (fb.adapt_words("closed/b"), fb.train_words("closed/t"), fb.run_words("closed/s"),
                  fb.report_words("a.jsonl", "closed/page.html"),
                  ("demo", "--assets", bench.assets, "--out", "closed/demo")):
        expect_error(bench.run(*words, **options), 2, "closed", "ermission denied")
        assert not list(closed.iterdir()), words
    # A store that may only be read is still good for a report.
    store = closed / "s"
    closed.chmod(0o755)
    shutil.copytree(bench.folder / "s", store)
    for path in (store / "records.jsonl", store, closed):
        path.chmod(0o444 if path.is_file() else 0o555)
    page = bench.run("report", "closed/s", "--format", "md", **options)
    assert page.returncode == 0 and page.out, page.err
    expect_error(bench.run(*fb.run_words("closed/s"), **options), 2, "ermission denied")
    for path in (closed, store):
        path.chmod(0o755)


def shrinking(bench):
    """Images, labels, weights and records that become shorter while they are read."""
    for name in ("x.npy", "y.npy", "source.safetensors"):
        whole = bench.read(name)
        for share in (0.0, 0.3, 0.9):
            process = bench.start(*fb.adapt_words("c", saving=False))
            time.sleep(0.4 * (1 + share))
            os.truncate(bench.folder / name, int(share * len(whole)))
            process.out, process.err = process.communicate(timeout=300)
            (bench.folder / name).write_bytes(whole)
            # What was read before stays read.
            if process.returncode:
                expect_error(process, 2, name)
    bench.must(*fb.adapt_words("c", saving=False))
    same(bench, (".jsonl", ".csv", ".safetensors"), "a", "c")


def little_memory(bench):
    """An address space of 1 GiB, and of less and less: an answer, or an error in words."""
    results = []
    for mebibytes in (1024, 900, 800, 700, 600, 500):
        limit = mebibytes << 20
        def confine(limit=limit):
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ended = bench.run("adapt", "--model", "wide_resnet:depth=28,width=4", "--data",
                          "arrays:images=x.npy", "--batch-size", "320", "--select", "all",
                          preexec_fn=confine)
        results.append(f"{mebibytes} MiB: {ended.returncode}")
        if ended.returncode == 127:
            break  # the libraries do not fit: that is the loader's word, not ours
        assert ended.returncode in (0, 1), f"{mebibytes} MiB: {ended.returncode} {ended.err}"
        if ended.returncode:
            expect_error(ended, 1, "memory")
    print("  ", ", ".join(results))


def two_runners(bench):
    """Two programs fill one store at once: each run once."""
    first, second = (bench.start(*fb.run_words("two")) for _ in range(2))
    for process in (first, second):
        process.out, process.err = process.communicate(timeout=300)
        assert process.returncode == 0, process.err
    assert records_of(bench, "two") == records_of(bench, "s")
    assert first.out == second.out
    bench.must("store", "check", "two")


def sigterm(bench):
    """A polite end: what was done is kept, and the same command goes on."""
    straight = bench.must(*fb.adapt_words("a", saving=False))
    for words, resumed in ((fb.adapt_words("d"), fb.adapt_words("d") + ("--resume", "d.state")),
                           (fb.train_words("d"), fb.train_words("d")),
                           (fb.run_words("d"), fb.run_words("d"))):
        process = bench.start(*words)
        wait_for(process, bench.folder, words[0])
        process.send_signal(signal.SIGTERM)
        process.out, process.err = process.communicate(timeout=300)
        assert process.returncode in (0, 130), f"{process.returncode}: {process.err}"
        if process.returncode == 130:
            assert "stopped" in process.err and "error" not in process.err, process.err
        if words[0] == "adapt":
            assert bench.must(*resumed).out == straight.out
            same(bench, (".jsonl", ".csv", ".events", ".safetensors"), "a", "d")
            bench.remove("d.*")
        else:
            bench.must(*resumed)
    assert bench.read("d.safetensors") == bench.read("t.safetensors")
    assert records_of(bench, "d") == records_of(bench, "s")


def wait_for(process, folder, kind):
    """Until the command has written something."""
    name = {"adapt": "d.jsonl", "train": "d.safetensors.checkpoint", "run": "d/records.jsonl"}[kind]
    path = folder / name
    while process.poll() is None and not (path.exists() and path.stat().st_size):
        time.sleep(0.002)


def closed_pipes(bench):
    """Nobody reads what it prints, as with `| head -1`: nothing is lost, and the program ends."""
    straight = bench.must(*fb.adapt_words("a", saving=False))
    for stream in ("stdout", "stderr"):
        for words in (("list",), ("report", "s", "--format", "md"), fb.adapt_words("e"),
                      fb.train_words("e"), fb.run_words("e"), ("inspect", "--model", "resnet18")):
            reader, writer = os.pipe()
            os.close(reader)
            process = bench.start(*words, **{stream: writer})
            os.close(writer)
            process.communicate(timeout=300)
            # As from a full disk, or by SIGPIPE where nothing was begun.
            assert process.returncode in (0, 1, 130, -signal.SIGPIPE), (words, process.returncode)
        state = ("--resume", "e.state")
        assert (bench.folder / "e.state").exists(), f"closed {stream}: there is no state to go on from"
        assert bench.must(*fb.adapt_words("e"), *state).out == straight.out
        same(bench, (".jsonl", ".csv", ".events", ".safetensors"), "a", "e")
        bench.must(*fb.train_words("e"))
        bench.must(*fb.run_words("e"))
        assert records_of(bench, "e") == records_of(bench, "s")
        bench.remove("e.*", "e/**/*", "e")


def poisoned_labels(bench):
    """Labels are counted and never learned from: with wrong ones the answers are the same. Those that cannot be are
    refused."""
    images = len(bench.read("a.csv").splitlines()) - 1
    right = bench.read("y.npy")
    answers = [line.rsplit(b",", 1)[0] for line in bench.read("a.csv").splitlines()]
    for label in (3, -1, 10, -7, 1 << 62):
        fb.write_npy(bench.folder / "y.npy", "<i8", (images,), struct.pack("<q", label) * images)
        ended = bench.run(*fb.adapt_words("p", saving=False))
        if label == 3:
            assert ended.returncode == 0, ended.err
            found = [line.rsplit(b",", 1)[0] for line in bench.read("p.csv").splitlines()]
            assert found == answers, "labels changed an answer"
            same(bench, (".safetensors",), "a", "p")
        else:
            expect_error(ended, 2)
    (bench.folder / "y.npy").write_bytes(right)


FAULTS = (full_disk, read_only, shrinking, little_memory, two_runners, sigterm, closed_pipes, poisoned_labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--assets", required=True)
    parser.add_argument("--only", choices=[fault.__name__ for fault in FAULTS])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = fb.Bench(given.program, given.assets, pathlib.Path(folder))
        bench.must(*fb.adapt_words("a"))
        bench.must(*fb.train_words("t"))
        bench.must(*fb.run_words("s"))
        for fault in FAULTS:
            if given.only not in (None, fault.__name__):
                continue
            begin = time.monotonic()
            try:
                fault(bench)
                print(f"{fault.__name__}: as it should be, {time.monotonic() - begin:.0f} s", flush=True)
            except Impossible as why:
                print(f"{fault.__name__}: left out, {why}", flush=True)


if __name__ == "__main__":
    main()

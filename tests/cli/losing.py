#!/usr/bin/env python3
"""A GPU that goes away in the middle of a run: a call of CUDA's fails, and every one behind it. The program ends with
`error: the GPU failed: ...` and exit code 1, leaves no half-written file, and with the GPU back the same command goes on
to the result of a run that nothing disturbed.

    losing.py --program build/cli/gala --assets assets --losing build/tests/cli/libgala_losing.so [--device cuda]
        [--points 3] [--only trap]

Which calls there are is counted in a run that nothing disturbs; then the GPU goes away at so many points of each function,
spread over the run. First by errors that tests/cli/losing.cpp pretends (adapt, run), then by a kernel that breaks
the GPU's context for good (trap).

--device disk tries the same without a GPU, with a disk that breaks: every write fails from some point on.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

import fault_bench as fb
from kills import records_of, same

SKIPPED = 77
FILES = (".jsonl", ".csv", ".events", ".safetensors")
# What LibTorch and gala call while they step; those that a run does not call are passed over.
STEPPING = {
    "cuda": ("cudaGraphLaunch", "cudaEventSynchronize", "cudaMemcpyAsync", "cudaLaunchKernel", "__cudaLaunchKernel",
             "cudaEventRecord", "cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaHostAlloc", "cudaMalloc"),
    "disk": ("write", "writev", "fsync"),
}
# cuDNN, for which LibTorch looks for another way when one fails, may be the first to notice.
SAYS = {"cuda": ("the GPU failed", "unable to find an engine"), "disk": ("disk", "Input/output error", "cannot be written")}
# An illegal address, a device that is not initialized any more, a kernel that failed.
ERRORS = (700, 201, 719)


class Loser:
    """Runs commands that lose their device."""

    def __init__(self, bench, library, device):
        self.bench, self.library, self.device = bench, pathlib.Path(library).resolve(), device
        self.report = bench.folder / "losing.report"
        self.losses = 0

    def words(self, words):
        return tuple(words) + (("--device", "cuda") if self.device == "cuda" else ())

    def environment(self, **wishes):
        wishes = {f"GALA_LOSE{name}": str(value) for name, value in wishes.items()}
        return dict(self.bench.environment, LD_PRELOAD=str(self.library), GALA_LOSE_REPORT=str(self.report),
                    **wishes)

    def count(self, words):
        """How often each function is called in a run that nothing disturbs, and that run."""
        ended = self.bench.must(*self.words(words), env=self.environment())
        return ended, dict((name, int(calls)) for name, calls in
                           (line.split() for line in self.report.read_text().splitlines()))

    def lose(self, words, function, number, **wishes):
        """The command ends as it should."""
        self.report.unlink(missing_ok=True)
        ended = self.bench.run(*self.words(words), env=self.environment(**{"": f"{function}:{number}"}, **wishes))
        told = f"{function}:{number} {wishes}: code {ended.returncode}: {ended.err}"
        assert f"lost {function}" in self.report.read_text(), f"nothing was lost: {told}"
        assert "no trap" not in ended.err, told
        assert ended.returncode == 1, told
        errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
        # LibTorch warns of what it could not give back, until the very end.
        lines = [line for line in ended.err.splitlines() if not line.startswith("[W")]
        assert len(errors) == 1 and lines[-1] == errors[0], told
        assert any(words in errors[0] for words in SAYS[self.device]), told
        assert "terminate called" not in ended.err, told
        half = [path.name for path in self.bench.folder.rglob("*.partial.*")]
        assert not half, f"{half} was left: {told}"
        self.losses += 1

    def points(self, counts, points):
        """Functions and numbers of their calls, spread over the run; the last tenth is not surely reached."""
        for function in STEPPING[self.device]:
            calls = counts.get(function, 0)
            shares = [(2 * i + 1) / (2 * points) for i in range(points)]
            for number in sorted({max(1, int(0.9 * share * calls)) for share in shares} if calls else ()):
                yield function, number


def lose_in_adapt(loser, points, **wishes):
    bench = loser.bench
    words = loser.words
    straight, counts = loser.count(fb.adapt_words("a", saving=False))
    # What a fault is blamed for must hold without one.
    again = bench.must(*words(fb.adapt_words("c")))
    assert again.out == straight.out, "two runs that nothing disturbed differ"
    same(bench, FILES, "a", "c")
    _, counts = loser.count(fb.adapt_words("c"))
    print("  ", ", ".join(f"{name} {calls}" for name, calls in sorted(counts.items())), flush=True)
    for turn, (function, number) in enumerate(loser.points(counts, points)):
        bench.remove("b.*")
        loser.lose(fb.adapt_words("b"), function, number, **wishes, _ERROR=ERRORS[turn % len(ERRORS)])
        resume = ("--resume", "b.state") if (bench.folder / "b.state").exists() else ()
        ended = bench.must(*words(fb.adapt_words("b") + resume))
        assert ended.out == straight.out, f"{function}:{number}: another result"
        same(bench, FILES, "a", "b")
        print(f"   adapt lost its device at {function}:{number}, "
              f"{'went on' if resume else 'began anew'}", flush=True)
    bench.remove("b.*")


def lose_in_run(loser, points, **wishes):
    bench = loser.bench
    _, counts = loser.count(fb.run_words("s"))
    expected = records_of(bench, "s")
    print("  ", ", ".join(f"{name} {calls}" for name, calls in sorted(counts.items())), flush=True)
    for turn, (function, number) in enumerate(loser.points(counts, points)):
        bench.remove("k/**/*", "k")
        loser.lose(fb.run_words("k"), function, number, **wishes, _ERROR=ERRORS[turn % len(ERRORS)])
        bench.must(*loser.words(fb.run_words("k")))
        assert records_of(bench, "k") == expected, f"{function}:{number}: other records"
        bench.must("store", "check", "k")
        print(f"   run lost its device at {function}:{number}, and went on", flush=True)
    bench.remove("k/**/*", "k")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--assets", required=True)
    parser.add_argument("--losing", required=True, help="the library made of losing.cpp")
    parser.add_argument("--device", choices=("cuda", "disk"), default="cuda")
    parser.add_argument("--points", type=int, default=1, help="of each function")
    parser.add_argument("--only", choices=("adapt", "run", "trap"))
    given = parser.parse_args()
    if given.device == "cuda" and not os.path.exists("/dev/nvidiactl"):
        print("skipped: there is no GPU")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        bench = fb.Bench(given.program, given.assets, pathlib.Path(folder))
        loser = Loser(bench, given.losing, given.device)
        if given.device == "cuda":
            tried = bench.run(*loser.words(fb.adapt_words("a", saving=False)))
            if tried.returncode == 2:
                print(f"skipped: {tried.err.strip()}")
                sys.exit(SKIPPED)
        trials = {"adapt": lambda: lose_in_adapt(loser, given.points),
                  "run": lambda: lose_in_run(loser, given.points),
                  "trap": lambda: lose_in_adapt(loser, given.points, _TRAP=1)}
        if given.device != "cuda":
            del trials["trap"]
        for name, trial in trials.items():
            if given.only not in (None, name):
                continue
            begin, before = time.monotonic(), loser.losses
            trial()
            print(f"{name}: {loser.losses - before} losses, nothing else was lost, "
                  f"{time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Kills the program at random moments, again and again: going on must always succeed, and what is there in
the end must be what an undisturbed run leaves, byte for byte.

    kills.py --program build/cli/gala --assets assets [--kills 200] [--only adapt] [--minutes 10] [--seed 1]

So many kills of each of adapt, train, run --jobs 2 and report, each at a moment drawn evenly from the time that
the command takes.
"""
import argparse
import json
import pathlib
import random
import signal
import tempfile
import time

import fault_bench as fb

MOST_LIVES = 100  # of one piece of work: beyond that it does not come forward


class Killer:
    def __init__(self, bench, seed, minutes):
        self.bench, self.random, self.kills = bench, random.Random(seed), 0
        self.end = time.monotonic() + 60 * minutes

    def goes_on(self, kills):
        return self.kills < kills and time.monotonic() < self.end

    def time_of(self, *words):
        begin = time.monotonic()
        self.bench.must(*words)
        return time.monotonic() - begin

    def life(self, words, longest):
        """Starts the command and kills it after a random time; its ending where it was quicker."""
        process = self.bench.start(*words)
        try:
            process.out, process.err = process.communicate(
                timeout=self.random.uniform(0.0, longest))
        except fb.subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.out, process.err = process.communicate()
            if process.returncode == -signal.SIGKILL:
                self.kills += 1
                return None
        assert process.returncode == 0, f"going on failed ({process.returncode}): {process.err}"
        return process

    def until_done(self, words_of, longest, check=lambda: None):
        for number in range(MOST_LIVES):
            ended = self.life(words_of(), longest)
            check()
            if ended is not None:
                return ended
            if number % 8 == 7:
                longest *= 1.5  # a busy machine may take longer than when it was timed
        raise AssertionError("the work does not come forward")


def same(bench, names, one, other):
    for name in names:
        assert bench.read(one + name) == bench.read(other + name), f"{one}{name}, {other}{name} differ"


def only_partial(bench, before, allowed):
    """Beside what the command is to write there may be temporary files, and nothing else."""
    for path in bench.folder.iterdir():
        name = path.name
        known = name in before or name in allowed
        assert known or ".partial." in name, f"{name} was left behind"


def kill_adapt(killer, kills):
    bench, names = killer.bench, (".jsonl", ".csv", ".events", ".safetensors", ".state")
    longest = killer.time_of(*fb.adapt_words("a"))
    straight = bench.must(*fb.adapt_words("a", saving=False))
    before = {path.name for path in bench.folder.iterdir()}
    bench.must(*fb.adapt_words("a"))  # with its state
    state = bench.folder / "b.state"
    def words():
        resume = ("--resume", "b.state") if state.exists() else ()
        return fb.adapt_words("b") + resume
    while killer.goes_on(kills):
        bench.remove("b.*")
        ended = killer.until_done(words, 1.2 * longest,
                                  lambda: only_partial(bench, before, {"b" + n for n in names}))
        assert ended.out == straight.out, "another result is told"
        same(bench, names[:4], "a", "b")
        # A state names the files beside it; all else is the same.
        one, other = bench.read("a.state"), bench.read("b.state")
        assert len(one) == len(other), "the states differ"
    bench.remove("b.*")


def kill_train(killer, kills):
    bench = killer.bench
    longest = killer.time_of(*fb.train_words("t"))
    expected = bench.read("t.safetensors")
    while killer.goes_on(kills):
        bench.remove("u.*")
        killer.until_done(lambda: fb.train_words("u"), 1.2 * longest)
        assert bench.read("u.safetensors") == expected, "other weights"
        assert not (bench.folder / "u.safetensors.checkpoint").exists()
    bench.remove("u.*")


def records_of(bench, store):
    """By key, without what the machine and the clock put into them; nothing may be there twice."""
    found, places = {}, set()
    for line in bench.read(f"{store}/records.jsonl").decode().splitlines():
        record = json.loads(line)
        if record["kind"] == "place":
            place = json.dumps(record, sort_keys=True)
            assert place not in places, "a place is there twice"
            places.add(place)
            continue
        assert record["key"] not in found, "a record is there twice"
        del record["cost"], record["provenance"]
        found[record["key"]] = record
    return found, places


def kill_run(killer, kills):
    bench = killer.bench
    longest = killer.time_of(*fb.run_words("s"))
    expected = records_of(bench, "s")
    traces = {path.name: path.read_bytes() for path in (bench.folder / "s/traces").iterdir()}
    while killer.goes_on(kills):
        bench.remove("k/**/*", "k")
        killer.until_done(lambda: fb.run_words("k"), 1.2 * longest)
        assert records_of(bench, "k") == expected, "other records"
        for name, content in traces.items():
            assert (bench.folder / "k/traces" / name).read_bytes() == content, f"another {name}"
        bench.must("store", "check", "k")
    bench.remove("k/**/*", "k")


def kill_report(killer, kills):
    bench = killer.bench
    if not (bench.folder / "s").exists():
        bench.must(*fb.run_words("s"))
    store = bench.folder / "half"
    store.mkdir()
    (store / "records.jsonl").write_bytes(b"".join(bench.read("s/records.jsonl").splitlines(True)[:5]))
    longest = max(killer.time_of(*fb.report_words(name, f"{name}.html")) for name in ("s", "half"))
    pages = [bench.read("s.html"), bench.read("half.html")]
    assert pages[0] != pages[1]
    turn = 0
    while killer.goes_on(kills):
        turn += 1
        killer.life(fb.report_words(("s", "half")[turn % 2], "page.html"), longest)
        if (bench.folder / "page.html").exists():
            assert bench.read("page.html") in pages, "half a page"
    for name, page in zip(("s", "half"), pages):
        bench.must(*fb.report_words(name, "page.html"))
        assert bench.read("page.html") == page


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--assets", required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=1e6, help="most, for each of the four")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("adapt", "train", "run", "report"))
    given = parser.parse_args()
    kinds = {"adapt": kill_adapt, "train": kill_train, "run": kill_run, "report": kill_report}
    with tempfile.TemporaryDirectory() as folder:
        bench = fb.Bench(given.program, given.assets, pathlib.Path(folder))
        for name, kill in kinds.items():
            if given.only not in (None, name):
                continue
            killer, begin = Killer(bench, f"{given.seed} {name}", given.minutes), time.monotonic()
            kill(killer, given.kills)
            print(f"{name}: {killer.kills} kills, nothing lost, {time.monotonic() - begin:.0f} s",
                  flush=True)


if __name__ == "__main__":
    main()

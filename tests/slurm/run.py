"""`gala run --slurm` on a real Slurm of two nodes, one of which dies in the middle.

  run.py PROGRAM ASSETS

Skipped (exit code 77) where Slurm or munge is not installed.
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import cluster

PLAN = """
[plan]
name = "try"
title = "A try"
[run]
protocol = 'continual:generate=yes,images={images},corruption="contrast,brightness",path={assets}/cifar10_test_2000.png'
model = "wide_resnet:depth=10,width=1"
batch_size = 25
backbone = "tiny"
[axes]
loss = ["pseudo_label:beta=0.05", "shot"]
seed = [0, 1, 2, 3, 4, 5]
[[row]]
name = "GALA"
select = "gala:window=2"
trace = true
[[row]]
name = "Random"
select = "random"
"""
RUNS = 24


def lines_of(store):
    for file in [store / "records.jsonl", *sorted(store.glob("records/*.jsonl"))]:
        for line in file.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)


def results(store):
    """What the runs of a store came to, without what machine and clock put in."""
    found = {}
    for line in lines_of(store):
        if line["kind"] != "run":
            continue
        for name in ("cost", "provenance"):
            del line[name]
        if found.setdefault(line["key"], line) != line:
            raise AssertionError(f"run {line['key']} came to two results")
    return found


class Case:
    def __init__(self, program, folder, machines):
        self.program, self.folder, self.machines = program, folder, machines
        self.began = time.monotonic()

    def say(self, text):
        print(f"{time.monotonic() - self.began:5.0f} s  {text}", flush=True)

    def gala(self, *arguments, code=0):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, env=self.machines.environment, text=True,
                              capture_output=True, timeout=600, check=False)
        assert done.returncode == code, f"gala {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def gala_on(self, node):
        return self.machines.programs_on(node, pathlib.Path(self.program).name)

    def tasks(self):
        """State and restarts of the tasks, by number."""
        found = {}
        for line in self.machines.run("squeue", "--noheader", "--array", "--states=all",
                                      "--Format=ArrayTaskID:20,State:20,RestartCnt:20").splitlines():
            number, state, restarts = line.split()
            found[int(number)] = (state, int(restarts))
        return found

    def run(self):
        store, local = self.folder / "store", self.folder / "local"
        self.gala("run", "plan.toml", "--store", "local", "--quiet")
        expected = results(local)
        assert len(expected) == RUNS

        self.say("made without Slurm")
        submitted = self.gala("run", "plan.toml", "--store", "store", "--shards", "4", "--slurm", "--time=30",
                              "--comment=two words")
        assert "24 runs in 4 tasks" in submitted.stdout, submitted.stdout
        refused = self.gala("run", "plan.toml", "--store", "store", "--slurm", code=2)
        assert "is at work on this plan already" in refused.stderr, refused.stderr
        watching = subprocess.Popen([self.program, "run", "plan.toml", "--store", "store"], cwd=self.folder,
                                    env=self.machines.environment, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        # A program that is killed alone, as by the kernel for want of memory: its task requeues itself.
        cluster.wait_for("a record", lambda: (store / "records").exists(), 120)
        cluster.kill(cluster.wait_for("gala on n1", lambda: self.gala_on("n1"), 120)[0], signal.SIGKILL)
        self.say("a program was killed")
        # Then a node, with whatever is at work there: Slurm requeues the task when it misses the node.
        cluster.wait_for("gala on n2", lambda: self.gala_on("n2"), 120)
        self.machines.kill_node("n2")
        self.say(f"n2 died; {len(results(store))} of {RUNS} runs were there")

        out, err = watching.communicate(timeout=400)
        assert watching.returncode == 0, f"{watching.returncode}\n{out}\n{err}"
        self.say("all runs are there")
        assert "GALA" in out and "Random" in out, out
        cluster.wait_for("the tasks' end", lambda: {s for s, _ in self.tasks().values()} <= {"COMPLETED"}, 60)
        self.say("all tasks are over")
        restarts = sorted(count for _, count in self.tasks().values())
        assert restarts[-2:] == [1, 1] or restarts[-1] >= 2, f"one task was killed, one lost its node: {restarts}"
        logs = "".join(log.read_text() for log in (store / "slurm").glob("*.log"))
        assert "requeued" in logs, logs

        assert results(store) == expected, "another result than without Slurm"
        assert len(list((store / "records").glob("*.jsonl"))) >= 4, "a file for each task"
        assert not (store / "records.jsonl").read_bytes()
        assert f"{RUNS} runs" in self.gala("store", "check", "store").stdout
        self.gala("store", "merge", "merged", "store")
        assert results(self.folder / "merged") == expected
        assert "0 to do" in self.gala("run", "plan.toml", "--store", "store", "--slurm").stderr


def main():
    if lacking := cluster.missing():
        print(f"skipped: Slurm and munge are not installed ({', '.join(lacking)} not found)")
        sys.exit(77)
    program, assets = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="gala_slurm_") as name:
        folder = pathlib.Path(name)
        (folder / "plan.toml").write_text(PLAN.format(assets=assets, images=200))
        with cluster.Cluster(folder / "cluster") as machines:
            Case(program, folder, machines).run()
    print("a node died, a program was killed, and the results are those of a local run")


if __name__ == "__main__":
    main()

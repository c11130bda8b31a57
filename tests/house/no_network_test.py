#!/usr/bin/env python3
"""The program in a network namespace without interfaces: no_network_test.py PROGRAM SOURCE.

First the program's own code is looked through for calls that open connections; then the commands that read and write
most run where nobody could be reached. Exit code 77 where the system allows no such namespace.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
CALLS = {"socket", "connect", "getaddrinfo", "gethostbyname", "sendto", "bind", "listen", "accept", "accept4"}


def outside():
    """The words that run a command without a network; None where that is not allowed."""
    for words in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        try:
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        except FileNotFoundError:
            return None
    return None


def calls_of(program):
    listed = subprocess.run(["nm", "--dynamic", "--undefined-only", str(program)], capture_output=True, text=True,
                            check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines() if line.strip()}


def commands(program, source, folder):
    images = source / "assets/cifar10_test_2000.png"
    weights = source / "assets/wrn16_2_cifar10.safetensors"
    plan = folder / "plan.toml"
    plan.write_text(f"""[plan]
name = "alone"
title = "Alone"
[run]
protocol = 'continual:generate=yes,images=40,path={images},corruption="fog"'
weights = "{weights}"
batch_size = 20
trace = true
select = "gala"
""")
    training = folder / "training.toml"
    training.write_text(f"""[model]
network = "wide_resnet:depth=10,width=1,classes=10"
[data]
train = "cifar10:path={images}"
[train]
epochs = 1
batch_size = 1000
[output]
weights = "{folder}/trained.safetensors"
""")
    yield [program, "demo", "--images", "100", "--quiet", "--out", folder / "demo"]
    yield [program, "data", f"cifar10:path={images}"]
    yield [program, "corrupt", "--data", f"cifar10:path={images}", "--corruption", "fog", "--severity", "1", "--out",
           folder / "fog.npy"]
    yield [program, "train", training]
    yield [program, "inspect", "--weights", folder / "trained.safetensors"]
    yield [program, "run", plan, "--store", folder / "store"]
    yield [program, "store", "check", folder / "store"]
    yield [program, "report", folder / "store", "--format", "json", "--out", folder / "report.json"]


def main():
    program, source = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    calls = calls_of(program)
    if "read" not in calls and "open" not in calls:
        sys.exit(f"{program}: its calls cannot be told")
    if found := calls & CALLS:
        sys.exit(f"{program} calls {', '.join(sorted(found))}")
    namespace = outside()
    if namespace is None:
        print("skipped: this system allows no network namespace (unshare --net)")
        return SKIPPED
    interfaces = subprocess.run([*namespace, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
    if re.findall(r"^ *(\w+):", interfaces, re.M) not in ([], ["lo"]):
        sys.exit("the namespace has interfaces")
    with tempfile.TemporaryDirectory() as folder:
        for command in commands(program, source, pathlib.Path(folder)):
            words = [str(word) for word in command]
            print("$", *words, flush=True)
            done = subprocess.run([*namespace, *words], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        print("without a network:", ", ".join(sorted(path.name for path in pathlib.Path(folder).iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())

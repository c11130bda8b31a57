#!/usr/bin/env python3
"""The program in a network namespace without interfaces: no_network_test.py PROGRAM LIBRARY SOURCE.

First the library's code is looked through for calls that open connections, which only the meeting of processes that
train together may make; then the commands that read and write most run where nobody could be reached and where the
first socket ends the program, as it ends a training that is told to be one of two. Exit code 77 where the system
allows no such namespace.
"""

import ctypes
import os
import pathlib
import platform
import re
import signal
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
CALLS = {"socket", "connect", "getaddrinfo", "gethostbyname", "sendto", "bind", "listen", "accept", "accept4"}
MAY_CALL = {"rendezvous.cpp.o"}
SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # architecture and number of the system call


def outside():
    """The words that run a command without a network; None where that is not allowed."""
    for words in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        try:
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        except FileNotFoundError:
            return None
    return None


def callers(library):
    """The members of a static library that call something of CALLS."""
    listed = subprocess.run(["nm", "--undefined-only", str(library)], capture_output=True, text=True,
                            check=True).stdout
    found, member = set(), ""
    for line in listed.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif line.split()[-1:] and line.split()[-1] in CALLS:
            found.add(member)
    return found


def filter_of_sockets():
    """A function that lets the first socket end the process that calls it; None where that cannot be."""
    if platform.machine() not in SOCKET:
        return None
    architecture, number = SOCKET[platform.machine()]
    load, equal, answer, kill, allow = 0x20, 0x15, 0x06, 0x80000000, 0x7FFF0000
    steps = [(load, 0, 0, 4), (equal, 0, 3, architecture), (load, 0, 0, 0), (equal, 0, 1, number), (answer, 0, 0, kill),
             (answer, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)
    pr_set_seccomp, mode_filter, pr_set_no_new_privs = 22, 2, 38

    def install():
        if library.prctl(pr_set_no_new_privs, 1, 0, 0, 0) != 0:
            os._exit(SKIPPED)
        if library.prctl(pr_set_seccomp, mode_filter, ctypes.byref(program), 0, 0) != 0:
            os._exit(SKIPPED)

    done = subprocess.run(["true"], preexec_fn=install, check=False)
    install.keeps = (code, program)
    return install if done.returncode == 0 else None


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
    program, library, source = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    if found := callers(library) ^ MAY_CALL:
        sys.exit(f"{library.name}: {', '.join(sorted(found))} should (not) open connections")
    namespace = outside()
    if namespace is None:
        print("skipped: this system allows no network namespace (unshare --net)")
        return SKIPPED
    interfaces = subprocess.run([*namespace, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
    if re.findall(r"^ *(\w+):", interfaces, re.M) not in ([], ["lo"]):
        sys.exit("the namespace has interfaces")
    with tempfile.TemporaryDirectory() as folder:
        no_socket = filter_of_sockets()
        for command in commands(program, source, pathlib.Path(folder)):
            words = [str(word) for word in command]
            print("$", *words, flush=True)
            done = subprocess.run([*namespace, *words], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, preexec_fn=no_socket)
            if done.returncode != 0:
                sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        if no_socket:
            told = os.environ | {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
            words = [str(program), "train", f"{folder}/training.toml", "--wait", "1"]
            done = subprocess.run(words, env=told, capture_output=True, check=False, preexec_fn=no_socket)
            if done.returncode != -signal.SIGSYS:
                sys.exit(f"a training that is told to be one of two ended with {done.returncode} and no socket")
        print("without a network:", ", ".join(sorted(path.name for path in pathlib.Path(folder).iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())

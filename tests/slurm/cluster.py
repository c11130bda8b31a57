"""A Slurm cluster of two nodes on this machine, over loopback: a controller and two daemons in a folder of their own."""

import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo"]
NODES = ["n1", "n2"]

CONFIGURATION = """
ClusterName=gala
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=3
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool_%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd_%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd_%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MinJobAge=300
SchedulerParameters=batch_sched_delay=1,sched_interval=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=60 State=UP
"""


def find(program):
    """Daemons lie where a user's path may not lead."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin")


def missing():
    return [program for program in PROGRAMS if not find(program)]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(what, condition, seconds):
    """What the condition comes to, as soon as that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.2)
    return found


class Cluster:
    """Use with `with`: everything that was started is ended behind it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"), OMP_NUM_THREADS="1")

    def __enter__(self):
        (self.folder / "state").mkdir(parents=True)
        for node in NODES:
            (self.folder / f"spool_{node}").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        text = CONFIGURATION.format(host=socket.gethostname(), user=getpass.getuser(), folder=self.folder,
                                    ports=free_ports(3))
        (self.folder / "slurm.conf").write_text(text)
        try:
            # The key and the socket lie below a folder that others may write to, as /tmp is.
            self.run("munged", "--force", *(f"--{name}={self.folder}/{file}" for name, file in [
                ("key-file", "munge.key"), ("socket", "munge.sock"), ("pid-file", "munged.pid"),
                ("log-file", "munged.log"), ("seed-file", "munged.seed")]))
            self.run("slurmctld", "-c")
            for node in NODES:
                self.run("slurmd", "-c", "-N", node)
            wait_for("idle nodes", lambda: self.states() == ["idle"] * len(NODES), 30)
        except BaseException:
            self.print_logs()
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.print_logs()
        self.stop()

    def run(self, program, *arguments):
        done = subprocess.run([find(program), *arguments], env=self.environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)}: {done.returncode}\n{done.stdout}")
        return done.stdout

    def states(self):
        return self.run("sinfo", "--noheader", "--Node", "--format=%T").split()

    def print_logs(self):
        for log in sorted(self.folder.glob("*.log")):
            print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-30:]))

    def pid(self, name):
        try:
            return int((self.folder / f"{name}.pid").read_text())
        except (OSError, ValueError):
            return None

    def processes_on(self, node):
        """Of jobs on a node: process numbers with their parents'."""
        found = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
                conf = f"SLURM_CONF={self.folder}/slurm.conf".encode()
                if f"SLURMD_NODENAME={node}".encode() in variables and conf in variables:
                    parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                    found[int(process.name)] = parent
            except OSError:
                continue
        return found

    def programs_on(self, node, name):
        found = []
        for number in self.processes_on(node):
            try:
                if pathlib.Path(f"/proc/{number}/comm").read_text().strip() == name:
                    found.append(number)
            except OSError:
                continue
        return found

    def kill_node(self, node):
        """As if its power went: the daemon first, then what would tell the controller, then the jobs."""
        jobs = self.processes_on(node)
        keepers = {parent for parent in jobs.values() if parent not in jobs and parent > 1}
        for number in [self.pid(f"slurmd_{node}"), *keepers, *jobs]:
            kill(number, signal.SIGKILL)

    def stop(self):
        for node in NODES:
            self.kill_node(node)
        for name in ["slurmctld", "munged"]:
            number = self.pid(name)
            kill(number, signal.SIGTERM)
            try:
                wait_for(name, lambda number=number: not number or not pathlib.Path(f"/proc/{number}").exists(), 10)
            except TimeoutError:
                kill(number, signal.SIGKILL)


def kill(number, with_signal):
    try:
        if number:
            os.kill(number, with_signal)
    except ProcessLookupError:
        pass

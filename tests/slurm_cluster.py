"""A real Slurm of one node on loopback: munged, slurmctld and slurmd of this user, in a temporary folder.

`python tests/slurm_cluster.py` starts one, prints what to export, and stops it with Ctrl-C.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "sinfo")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # the daemons are where only root's PATH leads
MISSING = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
REASON = f"needs Slurm ({', '.join(MISSING)}): apt-get install slurmctld slurmd slurm-client munge"
PATIENCE = 60
WITH_PARENT = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []  # also where tests are killed
# No cgroups, no accounting, nothing outside of the folder. The node says that it has more than it has, so that several
# jobs run at once on any machine.
CONFIGURATION = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName=localhost NodeAddr=127.0.0.1 NodeHostname={host} CPUs=8 RealMemory=64000 State=UNKNOWN
PartitionName=short Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """A running Slurm; `env` is what its commands and those who call them need."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}

    def told(self, *command):
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=True, timeout=30).stdout

    def jobs(self):
        """Return the state of every job, by its number."""
        told = self.told("squeue", "--noheader", "--states=all", "--format=%i %T")
        return dict(line.split() for line in told.splitlines())

    def running(self):
        return [job for job, state in self.jobs().items() if state == "RUNNING"]

    def kill(self, job):
        """End the processes of a job with -9, of which Slurm learns by itself."""
        of_job = {f"SLURM_JOB_ID={job}", f"SLURM_CONF={self.env['SLURM_CONF']}"}
        found = [process for process in Path("/proc").glob("[0-9]*") if of_job <= environment_of(process)]
        assert found, f"job {job} has no process"
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)

    def end_all(self):
        self.told("scancel", f"--user={getpass.getuser()}")
        wait_for(lambda: not self.told("squeue", "--noheader").strip(), "the jobs end")


def environment_of(process):
    try:
        return set((process / "environ").read_bytes().decode(errors="replace").split("\0"))
    except OSError:  # it has ended, or is somebody else's
        return set()


@contextlib.contextmanager
def slurm_on_loopback():
    """Start a Slurm, wait until its node is idle, and end all of it afterwards."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as name, contextlib.ExitStack() as started:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("state", "spool"):
            (folder / part).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        slurm = Slurm(folder)
        host, user = socket.gethostname().partition(".")[0], getpass.getuser()
        ports = dict(zip(("controller_port", "node_port"), free_ports(2), strict=True))
        (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, user=user, folder=folder, **ports))
        files = ("key-file=munge.key", "socket=munge.socket", "pid-file=munge.pid", "seed-file=munge.seed")
        places = [f"--{option}={folder}/{file}" for option, file in (pair.split("=") for pair in files)]
        for command in (["munged", "--foreground", *places], ["slurmctld", "-D"], ["slurmd", "-D", "-N", "localhost"]):
            started.enter_context(daemon(command, slurm))
        wait_for(lambda: "idle" in told_or_nothing(slurm, "sinfo", "--noheader", "--format=%t"), "the node is idle")
        try:
            yield slurm
        finally:
            slurm.end_all()


@contextlib.contextmanager
def daemon(command, slurm):
    with (slurm.folder / f"{command[0]}.out").open("w") as out:
        process = subprocess.Popen([*WITH_PARENT, *command], env=slurm.env, stdout=out, stderr=out, process_group=0)
    try:
        if command[0] == "munged":
            wait_for((slurm.folder / "munge.socket").exists, "munged listens")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def told_or_nothing(slurm, *command):
    try:
        return slurm.told(*command)
    except subprocess.SubprocessError:
        return ""


def wait_for(happened, what):
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.1)


def free_ports(count):
    with contextlib.ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in sockets]


if __name__ == "__main__":
    if MISSING:
        raise SystemExit(REASON)
    with slurm_on_loopback() as running, contextlib.suppress(KeyboardInterrupt):
        print(f"export SLURM_CONF={running.env['SLURM_CONF']}", flush=True)
        signal.pause()

"""The escape matrix: each attempt runs for real in the look, fork and work views."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from forkdeck.sandbox import bubblewrap
from forkdeck.sandbox.environment import child_environment
from forkdeck.sandbox.runner import MOVED, Runner, prepared
from forkdeck.sandbox.view import View
from forkdeck.sandbox.views import fork_view, look_view, work_view
from tests.sandbox.lab import Lab, git

pytestmark = pytest.mark.needs_sandbox

PLAIN = 65534

CONNECT = (
    'python3 -c "import socket;s=socket.socket(socket.{family});s.settimeout(2);'
    "s.connect({address});s.send(b'PWN')\""
)
DAEMON = """python3 -c "import os
if os.fork()==0:
 os.setsid()
 if os.fork()==0:
  [os.close(i) for i in range(3)]
  os.execvp('sleep',['sleep','{tag}'])
 os._exit(0)"; sleep 0.05"""
PTRACE = (
    'python3 -c "import ctypes;l=ctypes.CDLL(None);r=l.ptrace(16,{pid},0,0);'
    "print('TRA'+'CED' if r==0 else 'no')\""
)


class Host:
    """The host's side of one attempt: what could be harmed, and whether it was."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.received: list[bytes] = []
        self.tag = f"47.{os.getpid()}{time.monotonic_ns() % 10**6}"
        self._sockets: list[socket.socket] = []
        self.process = subprocess.Popen(
            ["sleep", "600"], env={"PATH": os.environ["PATH"], "HOSTVAR": "hostsecret"}
        )
        self.leftovers: list[Path] = []

    def serve(self, family: int, address: object) -> socket.socket:
        server = socket.socket(family)
        server.bind(address)  # pyright: ignore[reportArgumentType] - any family's address
        server.listen(4)
        self._sockets.append(server)

        def loop() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    self.received.append(connection.recv(100))

        threading.Thread(target=loop, daemon=True).start()
        return server

    def become(self, user: int) -> None:
        """Let the host's process be one of the user who attacks."""
        self.process.kill()
        self.process.wait()
        environ = {"PATH": os.environ["PATH"], "HOSTVAR": "hostsecret"}
        self.process = subprocess.Popen(
            ["sleep", "600"], env=environ, user=user, group=user, extra_groups=[]
        )

    def close(self) -> None:
        for server in self._sockets:
            server.shutdown(socket.SHUT_RDWR)
            server.close()
        for path in self.leftovers:
            path.unlink(missing_ok=True)
        self.process.kill()
        self.process.wait()

    def harmed(self) -> list[str]:
        """Return everything on the host that is not as it was."""
        lab, wrong = self.lab, []
        facts = lab.victim.lstat()
        if lab.victim.read_text() != "victim\n" or facts.st_mode & 0o777 != 0o644:
            wrong.append("victim")
        if facts.st_mtime != 1e9 or os.listxattr(lab.victim):
            wrong.append("victim's facts")
        if (lab.home / ".bashrc").read_text() != "#rc\n":
            wrong.append(".bashrc")
        if sorted(p.name for p in lab.home.iterdir()) != [".bashrc", ".netrc", ".ssh"]:
            wrong.append("home")
        if self.process.poll() is not None:
            wrong.append("host process")
        if self.received:
            wrong.append("socket reached")
        if Path("/dev/shm/fdesc").exists():
            wrong.append("/dev/shm")
        if self.daemons():
            wrong.append("daemon survived")
        return wrong + self._git_harm()

    def _git_harm(self) -> list[str]:
        repo, wrong = self.lab.repo, []
        config = git(repo, "config", "--local", "--list")
        for word in ("hookspath", "fsmonitor", "alias"):
            if word in config:
                wrong.append(f"config {word}")
        hooks = (repo / ".git" / "hooks").glob("*")
        if any(not hook.name.endswith(".sample") for hook in hooks):
            wrong.append("hooks")
        if git(repo, "rev-parse", "refs/forkdeck/s/f1/base", check=False) != self.lab.head:
            wrong.append("refs/forkdeck")
        return wrong

    def daemons(self) -> list[int]:
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.tag.encode() in entry.read_bytes().split(b"\0"):
                    found.append(int(entry.parent.name))
            except OSError:
                continue
        return found


class Attempt(NamedTuple):
    script: Callable[[Host], str]
    shows: str = ""
    """A word that must not come back from inside."""


def _at(text: str) -> Callable[[Host], str]:
    def make(host: Host) -> str:
        lab = host.lab
        values = {
            "V": str(lab.victim), "HOME": str(lab.home), "REPO": str(lab.repo),
            "PID": str(host.process.pid), "APP": str(os.getpid()), "TAG": host.tag,
            "STATE": str(lab.state),
        }  # fmt: skip
        result = text
        for name, value in values.items():
            result = result.replace(f"@{name}@", value)
        return result

    return make


def _path_socket(host: Host) -> str:
    path = str(host.lab.base / "docker.sock")
    host.serve(socket.AF_UNIX, path)
    return CONNECT.format(family="AF_UNIX", address=f"'{path}'")


def _run_socket(host: Host) -> str:
    path = f"/run/forkdeck-{os.getpid()}.sock"
    try:
        host.serve(socket.AF_UNIX, path)
    except PermissionError:
        pytest.skip("/run is not writable for this user")
    host.leftovers.append(Path(path))
    return CONNECT.format(family="AF_UNIX", address=f"'{path}'")


def _abstract_socket(host: Host) -> str:
    name = f"forkdeck-{os.getpid()}"
    host.serve(socket.AF_UNIX, "\0" + name)
    return CONNECT.format(family="AF_UNIX", address=f"'\\0{name}'")


def _tcp(host: Host) -> str:
    port = host.serve(socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
    return CONNECT.format(family="AF_INET", address=f"('127.0.0.1',{port})")


ATTEMPTS: dict[str, Attempt] = {
    "absolute path": Attempt(_at("echo pwn > @V@")),
    "append to rc file": Attempt(_at("echo pwn >> @HOME@/.bashrc")),
    "through symlink": Attempt(_at("ln -sf @V@ /tmp/l; echo pwn > /tmp/l")),
    "hardlink": Attempt(_at("ln @V@ /tmp/h && echo pwn > /tmp/h")),
    "unlink and rename": Attempt(_at("rm -f @V@; mv @V@ @V@.x; mv /tmp/x @V@")),
    "chmod": Attempt(_at("chmod 777 @V@")),
    "utime": Attempt(_at("touch -d 2001-01-01 @V@")),
    "setxattr": Attempt(_at("python3 -c \"import os;os.setxattr('@V@','user.p',b'1')\"")),
    "truncate": Attempt(_at("truncate -s0 @V@")),
    "git config hooksPath": Attempt(_at("git -C @REPO@ config core.hooksPath /tmp/h")),
    "git config fsmonitor": Attempt(_at("git -C @REPO@ config core.fsmonitor 'touch /tmp/x'")),
    "git config by file": Attempt(_at("printf '[alias]\\nx=!id\\n' >> @REPO@/.git/config")),
    "write a hook": Attempt(_at("echo x > @REPO@/.git/hooks/post-checkout")),
    "replace .git": Attempt(
        _at(
            "cd @REPO@; mv .git g2; mkdir -p .git/hooks; echo x > .git/hooks/post-checkout;"
            "rm -rf .git/hooks; mv .git/hooks .git/h2; mkdir .git/hooks; echo x>.git/hooks/pre-push"
        )
    ),
    "replace refs": Attempt(_at("cd @REPO@/.git; mv refs r2; rm -rf refs/forkdeck refs")),
    "delete saved work": Attempt(_at("git -C @REPO@ update-ref -d refs/forkdeck/s/f1/base")),
    "remount": Attempt(_at("mount -o remount,rw /; mount --bind /tmp @HOME@; echo pwn > @V@")),
    "own user namespace": Attempt(
        _at("unshare -Urm sh -c 'mount -o remount,rw,bind /; mount -o remount,rw /; echo p > @V@'")
    ),
    "umount what hides": Attempt(_at("umount -l @HOME@/.ssh; cat @HOME@/.ssh/id"), "KEY"),
    "proc roots": Attempt(_at("echo pwn > /proc/self/root@V@; echo pwn > /proc/1/root@V@")),
    "host proc root": Attempt(_at("echo p > /proc/@PID@/root@V@; echo p > /proc/@APP@/root@V@")),
    "kill a host process": Attempt(_at("kill -9 @PID@; kill -9 -1")),
    "ptrace a host process": Attempt(_at(PTRACE.replace("{pid}", "@PID@")), "TRACED"),
    "host environ": Attempt(_at("tr '\\0' '\\n' < /proc/@PID@/environ"), "hostsecret"),
    "own secret": Attempt(_at("printenv ANTHROPIC_API_KEY; env"), "sk-ant-SECRET"),
    "ssh key": Attempt(_at("cat @HOME@/.ssh/id; cat @HOME@/.ssh/*"), "KEY"),
    "netrc": Attempt(_at("cat @HOME@/.netrc"), "PASSWORD"),
    "path socket": Attempt(_path_socket),
    "socket in /run": Attempt(_run_socket),
    "abstract socket": Attempt(_abstract_socket),
    "tcp loopback": Attempt(_tcp),
    "daemon": Attempt(_at("(setsid nohup sleep @TAG@ >/dev/null 2>&1 &); sleep 0.05")),
    "double fork": Attempt(_at(DAEMON.replace("{tag}", "@TAG@"))),
    "/dev/shm": Attempt(_at("echo x > /dev/shm/fdesc")),
    "leaked descriptor": Attempt(_at('for n in 5 9 60 61; do eval "echo pwn >&$n"; done')),
    "mkfifo": Attempt(_at("mkfifo @HOME@/ff; mknod @HOME@/nn c 1 3")),
    "setuid": Attempt(
        _at("grep NoNewPrivs /proc/self/status | grep -q '0$' && echo SUID''OK"), "SUIDOK"
    ),
    "sysctl": Attempt(
        _at("echo '|/tmp/x' > /proc/sys/kernel/core_pattern && echo WRO''TE"), "WROTE"
    ),
    "sysrq": Attempt(_at("echo h > /proc/sysrq-trigger && echo WRO''TE"), "WROTE"),
    "terminal": Attempt(_at("echo x > /dev/tty && echo WRO''TE"), "WROTE"),
    "forkdeck's state": Attempt(
        _at("ls -A @STATE@ | grep -v '^f[0-9]$'; cat @STATE@/log"), "log of"
    ),
    "other fork's tree": Attempt(_at("echo pwn > @STATE@/f2/tree/src/a.txt")),
    "raw device": Attempt(
        _at("mknod /tmp/d b 254 0 && head -c1 /tmp/d && echo RE''AD; ls /dev"), "READ"
    ),
}


@pytest.fixture
def host(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-SECRET")
    monkeypatch.setenv("HOME", str(lab.home))
    (lab.state / "log").write_text("log of the session\n")
    (lab.state / "f2" / "tree" / "src").mkdir(parents=True)
    (lab.state / "f2" / "tree" / "src" / "a.txt").write_text("other\n")
    made = Host(lab)
    leaked = os.open(lab.victim, os.O_RDWR)
    os.set_inheritable(leaked, True)
    os.dup2(leaked, 61)
    yield made
    os.close(leaked)
    os.close(61)
    made.close()


def _look(lab: Lab) -> View:
    return look_view(root=lab.repo, cwd=lab.repo, scratch=lab.scratch(), hide=lab.hide)


def _work(lab: Lab) -> View:
    return work_view(root=lab.repo, cwd=lab.repo, scratch=lab.scratch(), hide=lab.hide)


def _fork(lab: Lab) -> View:
    return fork_view(
        root=lab.repo, cwd=lab.repo, scratch=lab.scratch(), places=lab.fork("f1"), hide=lab.hide
    )


VIEWS = {"look": _look, "fork": _fork, "work": _work}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ATTEMPTS)
async def test_attempt_is_stopped(
    host: Host, lab: Lab, runner: Runner, view: str, name: str
) -> None:
    attempt = ATTEMPTS[name]
    seen = VIEWS[view](lab)
    script = attempt.script(host)
    result = await runner.run(seen, script, timeout_s=20)
    assert not result.timed_out
    if attempt.shows:
        assert attempt.shows not in result.head.replace(script, "")
    assert host.harmed() == []
    assert (lab.state / "f2" / "tree" / "src" / "a.txt").read_text() == "other\n"


@pytest.mark.parametrize(
    "name",
    ["absolute path", "path socket", "abstract socket", "tcp loopback", "write a hook", "daemon",
     "leaked descriptor", "host environ", "ssh key", "chmod", "mkfifo", "delete saved work"],
)  # fmt: skip
def test_attempt_works_without_a_sandbox(host: Host, name: str) -> None:
    """The attempts are real: outside the sandbox each does its harm."""
    attempt = ATTEMPTS[name]
    done = subprocess.run(
        ["bash", "-c", attempt.script(host)],
        pass_fds=(61,),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    until = time.monotonic() + 3
    while not host.harmed() and time.monotonic() < until and not attempt.shows:
        time.sleep(0.02)
    try:
        assert host.harmed() or (attempt.shows and attempt.shows in done.stdout)
    finally:
        for pid in host.daemons():
            os.kill(pid, signal.SIGKILL)


# What concerns the project itself: allowed in work, stopped in look and in a fork's view.
PROJECT: dict[str, str] = {
    "write the checkout": "echo pwn > @REPO@/src/a.txt",
    "commit": "git -C @REPO@ -c user.name=x -c user.email=x@y commit --allow-empty -qm pwn",
    "update-ref": "git -C @REPO@ update-ref refs/heads/main $(git -C @REPO@ "
    "-c user.name=x -c user.email=x@y commit-tree -m x 'HEAD^{tree}')",
    "write the ref": "echo 0 > @REPO@/.git/refs/heads/main",
    "push to itself": "git -C @REPO@ push -q -f . HEAD:refs/heads/main; git branch -D main",
    "delete an object": "f=$(find @REPO@/.git/objects @STATE@/f1/objects -type f -path '*/??/*'"
    " | head -1); chmod u+w $f; rm -f $f; mv $f /tmp/",
    "remove everything": "rm -rf @REPO@/.git @REPO@ @STATE@/f1/objects; chmod -R 000 @REPO@/.git",
    "aim .git elsewhere": "echo 'gitdir: /tmp/evil' > @REPO@/.git; rm -f @REPO@/.git;"
    " mv @REPO@/.git @REPO@/g2",
    "replace the directory": "mv @REPO@ @REPO@.old; ln -s @HOME@ @REPO@",
}


@pytest.mark.parametrize("view", ["look", "fork"])
@pytest.mark.parametrize("name", PROJECT)
async def test_the_parents_project_is_safe(
    host: Host, lab: Lab, runner: Runner, view: str, name: str
) -> None:
    seen = VIEWS[view](lab)
    await runner.run(seen, _at(PROJECT[name])(host), timeout_s=20)
    assert host.harmed() == []
    assert (lab.repo / "src" / "a.txt").read_text() == "a\n"
    assert git(lab.repo, "rev-parse", "main") == lab.head
    assert git(lab.repo, "fsck", "--full", "--no-dangling") == ""
    if view == "fork":
        assert (lab.state / "f1" / "dotgit").read_text() == f"gitdir: {lab.state}/f1/git\n"


async def test_git_works_in_a_fork_and_reaches_only_the_fork(lab: Lab, runner: Runner) -> None:
    seen = _fork(lab)
    script = "echo w >> src/a.txt; git commit -qam w && git log --oneline | wc -l; git status -s"
    result = await runner.run(seen, script, timeout_s=20)
    assert (result.exit_code, result.head) == (0, "2\n")
    assert (lab.state / "f1" / "tree" / "src" / "a.txt").read_text() == "a\nw\n"
    assert (lab.repo / "src" / "a.txt").read_text() == "a\n"


async def test_work_view_commits_but_keeps_the_config(lab: Lab, runner: Runner) -> None:
    script = (
        "echo w >> src/a.txt; git -c user.name=x -c user.email=x@y commit -qam w; git status -s;"
        "git config a.b c; echo $?"
    )
    result = await runner.run(_work(lab), script, timeout_s=20)
    assert git(lab.repo, "rev-list", "--count", "main") == "2"
    assert result.head.splitlines()[-1] != "0"
    assert "a.b" not in git(lab.repo, "config", "--list")


async def test_only_three_descriptors_inside(lab: Lab, runner: Runner) -> None:
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
    result = await runner.run(_look(lab), ["/usr/bin/env", "python3", "-c", code], timeout_s=20)
    # 3 is the directory that is being listed.
    assert result.head == "[0, 1, 2, 3]\n"


async def test_scratch_link_is_no_way_out(lab: Lab, runner: Runner) -> None:
    """A link left in the private /tmp must not become a mount point on the next command."""
    view = _look(lab)
    await runner.run(view, f"rm -rf /tmp/*; ln -s {lab.home} /tmp/forkdeck", timeout_s=20)
    assert (lab.scratch().tmp / "forkdeck").is_symlink() is False
    (lab.scratch().tmp / "forkdeck").rmdir()
    (lab.scratch().tmp / "forkdeck").symlink_to(lab.home)
    result = await runner.run(view, "ls -A /tmp/forkdeck; echo x > /tmp/forkdeck/y", timeout_s=20)
    assert "Read-only" in result.head
    assert not (lab.home / "y").exists()


def _run_as_plain_user(
    lab: Lab, runner: Runner, view: str, script: str
) -> subprocess.CompletedProcess[str]:
    seen = prepared(VIEWS[view](lab))
    for directory, names, files in os.walk(lab.base):
        for entry in [directory, *(f"{directory}/{n}" for n in (*names, *files))]:
            os.chown(entry, PLAIN, PLAIN, follow_symlinks=False)
    return subprocess.run(
        [
            *bubblewrap.arguments(runner.enforcement.program or "", seen),
            "--", "bash", "-c", script,
        ],
        env=child_environment(),
        user=PLAIN,
        group=PLAIN,
        extra_groups=[],
        capture_output=True,
        start_new_session=True,
        text=True,
        timeout=20,
        check=False,
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(
    ("name", "view"),
    [(name, "look") for name in ATTEMPTS]
    + [(name, "fork") for name in ("replace .git", "remount", "own user namespace", "sysctl",
       "umount what hides", "host proc root", "forkdeck's state", "other fork's tree")],
)  # fmt: skip
def test_attempt_is_stopped_as_a_plain_user(
    host: Host, lab: Lab, runner: Runner, view: str, name: str
) -> None:
    """The same argument list started by an ordinary user: other kernel rules apply to it."""
    attempt = ATTEMPTS[name]
    host.become(PLAIN)
    script = attempt.script(host)
    done = _run_as_plain_user(lab, runner, view, script)
    for _ in range(3):
        # As the runner: another test's socket went between its listing and its mount.
        if not any(sign in done.stderr for sign in MOVED):
            break
        done = _run_as_plain_user(lab, runner, view, script)
    until = time.monotonic() + 1
    while host.daemons() and time.monotonic() < until:
        time.sleep(0.01)
    assert "bwrap:" not in done.stderr
    if attempt.shows:
        assert attempt.shows not in done.stdout
    assert host.harmed() == []

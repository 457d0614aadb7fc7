"""The program between an agent and its browser: it puts up the walls, starts the browser, watches its memory, and tidies up.

Place in the flow: :mod:`gossamer.browser.chromium` starts it as a script, with the numbers of the browser's pipes, the limits of
memory, the program and its flags; without limits, the browser is one that a person sees, which has no walls. It writes one line of
JSON to standard output, which says which walls stand, and ends when the browser has. The browser ends by itself when its pipe
closes, as it does when the agent is killed; this program then takes its folder away, and ends every process that is left. It stands
on the standard library alone, and imports nothing once it is another user, who may not be allowed to read the files of this Python.

Promises:
    1. The browser runs as an ordinary user: root becomes `nobody` first.
    2. It has a network of its own without interfaces. Where the system forbids that, every name is unknown to it and every
       connection is sent to a proxy that is not there; the line says so.
    3. Nothing of it is left after this program has ended: no process, and no file.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
import time

#: `CLONE_...` of `man 2 unshare`.
_USERS, _NETWORK = 0x1000_0000, 0x4000_0000

#: `PR_SET_PDEATHSIG` and `PR_SET_DUMPABLE` of `man 2 prctl`.
_DEATH_SIGNAL, _DUMPABLE = 1, 4

#: The user `nobody`, as every system numbers it that has Python.
_NOBODY = 65_534

#: How the name of a browser's folder begins.
_PREFIX = "gossamer-browser-"

#: Seconds between two looks at the memory of the browser: a page that fills it takes some 300 MB a second.
_PAUSE = 0.25

#: The wall where the browser cannot have a network of its own. The proxy is not there, even for loopback; no name
#: has an address; and WebRTC, which sends datagrams of its own, goes through the proxy or nowhere.
_DEAD_ENDS = (
    "--proxy-server=socks5://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


def main() -> int:
    """Run the browser until it ends."""
    # The pipes are descriptors 3 and 4, where a browser looks for them, and nowhere else.
    pipes = int(sys.argv[1]), int(sys.argv[2])
    high = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in pipes]
    for one in pipes:
        os.close(one)
    for one, place in zip(high, (3, 4), strict=True):
        os.dup2(one, place)
        os.close(one)
    is_shown = not sys.argv[3]
    page_memory, memory = (float(limit) for limit in (sys.argv[3] or "inf,inf").split(","))
    if os.geteuid() == 0:  # leave root's identity
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    missing = "" if is_shown else _leave_network()
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))  # it waits until there is a browser to end
    folder = _held_folder()
    try:
        flags = [*sys.argv[4:], f"--user-data-dir={folder}", *(_DEAD_ENDS if missing else ())]
        browser = os.fork()
        if browser == 0:
            _become_browser(flags, folder, is_shown=is_shown)
        _guard(browser, missing, page_memory, memory)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _held_folder() -> str:
    """A folder that is held as long as this process lives; those of guards that were killed go first."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(_PREFIX) and _hold(entry.path):
                shutil.rmtree(entry.path, ignore_errors=True)
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        if _hold(folder) and os.access(folder, os.F_OK):  # another one may have taken it away in the instant between
            return folder


def _hold(folder: str) -> bool:
    """Hold a folder of this user, unless another process does."""
    with contextlib.suppress(OSError):
        if os.lstat(folder).st_uid == os.geteuid():
            fcntl.flock(os.open(folder, os.O_RDONLY | os.O_NOFOLLOW), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def _guard(browser: int, missing: str, page_memory: float, memory: float) -> None:
    """Tell of the browser, and watch it until it ends."""
    try:
        os.close(3)  # the browser sees the end of its pipe only if nothing else holds it
        os.close(4)
        signal.signal(signal.SIGTERM, lambda *_: _end(browser))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        os.write(1, json.dumps({"missing": missing}).encode() + b"\n")
        while os.waitpid(browser, os.WNOHANG)[0] == 0:
            # A process that takes more memory than a page may is ended, and the browser where all take more than they may.
            taken = dict(_memory(browser))
            if sum(taken.values()) > memory:
                _end(browser)
            for process, size in taken.items():
                if process != browser and size > page_memory:
                    _kill(process)
            time.sleep(_PAUSE)
    except ChildProcessError:
        pass
    finally:
        _end(browser)


def _leave_network() -> str:
    """Have no network but a loopback that is down; returns why not, where the system forbids it."""
    if not sys.platform.startswith("linux"):
        return "this system has no namespaces"
    trial = os.fork()  # half a namespace is worse than none: Chromium's own sandbox does not start in it
    if trial == 0:
        os._exit(_made_namespaces())
    if number := os.waitstatus_to_exitcode(os.waitpid(trial, 0)[1]) or _made_namespaces():
        return os.strerror(number)
    return ""


def _made_namespaces() -> int:
    """Make namespaces of users and network; returns the system's number of the error. The user stays who it is, for Chromium's own
    sandbox does not start for a user without a name."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_DUMPABLE, 1, 0, 0, 0)  # the files below belong to root since this process was root's
    if libc.unshare(_USERS | _NETWORK):
        return ctypes.get_errno()
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            file = os.open(f"/proc/self/{name}", os.O_WRONLY)
            os.write(file, text.encode())
            os.close(file)
    except OSError as error:
        return error.errno or 1
    return 0


def _become_browser(flags: list[str], folder: str, *, is_shown: bool) -> None:
    """Replace this process by the browser, in a session of its own; it dies with its guard."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    # Files that it writes lie in its own folder. Of the agent's environment a person's browser needs the screen and the language;
    # to another one it is no business.
    environment = {"HOME": folder, "TMPDIR": folder}
    if is_shown:
        environment = {"XAUTHORITY": f"{os.environ.get('HOME', '')}/.Xauthority", **os.environ, **environment}
    else:
        environment |= {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "TZ": "UTC"}
    try:
        os.execve(flags[0], flags, environment)  # noqa: S606  # the program that a person has chosen
    finally:
        os._exit(127)


def _memory(browser: int) -> list[tuple[int, int]]:
    """The processes of the browser's session, each with the bytes that it shares with no file."""
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                if int(_read(f"{entry.path}/stat").rpartition(b")")[2].split()[3]) == browser:
                    _, resident, shared = map(int, _read(f"{entry.path}/statm").split()[:3])
                    found.append((int(entry.name), (resident - shared) * 4096))
    return found


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)


def _end(browser: int) -> None:
    """Kill every process of the browser; the first one is killed by itself, too, for it may not have a session yet."""
    _kill(browser)
    with contextlib.suppress(OSError):
        os.killpg(browser, signal.SIGKILL)
    for process, _ in _memory(browser):
        _kill(process)


def _kill(process: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    os._exit(main())

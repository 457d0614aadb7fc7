"""Crawls that a click begins: a new one by a form, and one at rest that goes on or goes back to a checkpoint.

Place in the flow: :mod:`app` gives the form of a new crawl, which is made of the table of options, and hands what a browser
filled in to :func:`start`. Each crawl is a process of its own, as if a person had typed `gossamer crawl` or `gossamer resume`: it
outlives the dashboard, and everything that the command refuses is refused here in its words.

Promises: no click names a file, code or secret of this machine, or opens its network (decision 100). New crawls lie below the
folders that the dashboard shows, and nowhere else.
"""

import contextlib
import datetime
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import msgspec
import tomli_w

from gossamer.analysis.watching import last_lines
from gossamer.cli.steering import go_back
from gossamer.crawls.control.client import Control, holder
from gossamer.crawls.options import all_options
from gossamer.crawls.plan import default_directory, read_seeds
from gossamer.dashboard.crawls import key_of
from gossamer.dashboard.sites import read_form
from gossamer.engine import processes
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Property, build, nearest, option_name, properties
from gossamer.storage.logs import LOG_PATH
from gossamer.storage.tables.places import CRAWL_FILE, begun_crawl
from gossamer.values.errors import GossamerError, UsageError
from gossamer.values.url import scheme_of

# Processes that outlive the dashboard.

#: Seconds that a crawl may take to listen, before the browser is told that it is on its way; and between two looks.
BEGINNING, _LOOK = 15.0, 0.05

#: Exit statuses of a crawl that did work: it finished, was stopped, or is incomplete.
WORKED = (0, 3, 4)

#: The file, inside the crawl directory, for messages to a person from a crawl that a click has begun.
CONSOLE = "logs/console.log"

#: Bytes of what it said that are read.
TAIL = 1 << 18


class Beginning(NamedTuple):
    process: int
    is_listening: bool
    """It is at work, and can be asked."""
    status: int | None
    """Its exit status, where it has ended."""

    @property
    def has_failed(self) -> bool:
        """It has ended without work."""
        return self.status is not None and self.status not in WORKED


def spawned(words: Sequence[str], given: bytes = b"", **streams: Any) -> "subprocess.Popen[bytes]":
    """`gossamer` with these words, which every user of this machine can see, in a session of its own; `given` is its standard
    input."""
    command, environment = processes.command("gossamer", *words), processes.environment()
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        return subprocess.Popen(command, env=environment, stdin=stdin, start_new_session=True, **streams)


def begin(words: Sequence[str], directory: Path, console: BinaryIO, given: bytes = b"") -> Beginning:
    """Run `gossamer` with these words until its crawl listens, it ends, or the time is over; it goes on after that."""
    child = spawned(words, given, stdout=console, stderr=console)
    deadline = time.monotonic() + BEGINNING
    while child.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(GossamerError), Control(directory, 1.0, changing=0.0):
            return Beginning(child.pid, True, None)
        time.sleep(_LOOK)
    return Beginning(child.pid, False, child.returncode)


def said_since(console: Path, begun: int) -> str:
    """The output of a process from a place of the file on."""
    with console.open("rb") as file:
        file.seek(begun)
        return file.read(TAIL).decode("utf-8", "replace").strip()


# Crawls at rest, and the ends of logs.

#: Lines of the log that are shown.
LINES = 200


class Restore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class LogLine(msgspec.Struct, frozen=True):
    fetched_at: str
    url: str
    outcome: str
    status: int = 0
    elapsed_ms: float = 0.0
    error: str = ""


class LogTail(msgspec.Struct, frozen=True):
    visits: list[LogLine]
    """The newest first."""
    said: list[str]
    """The output of crawls that the dashboard resumed; the newest last."""


class JobDone(msgspec.Struct, frozen=True):
    done: str


def resume(directory: Path) -> JobDone:
    """Let a crawl at rest go on, in a process of its own.
    Raises UsageError: there is no crawl, it runs already, or it cannot go on; says why."""
    begun_crawl(directory)
    if process := holder(directory):
        raise UsageError(f"process {process} is at work on {directory} already")
    path = directory / CONSOLE
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as console:
        begun = console.seek(0, 2)
        beginning = begin(["resume", str(directory)], directory, console)
    if beginning.is_listening:
        return JobDone(f"the crawl goes on, as process {beginning.process}")
    if beginning.status is None:
        return JobDone("the crawl begins to go on")
    said = said_since(path, begun)
    if beginning.has_failed:
        raise UsageError(said.rpartition("\n")[2] or f"gossamer resume ended with status {beginning.status}")
    return JobDone(f"the crawl went on, and has ended: {said.partition(chr(10))[0]}")


def restore(directory: Path, body: bytes) -> JobDone:
    """Go back to a checkpoint; only while no crawl runs. Raises UsageError: no checkpoint is named, or there is none of this
    name. Raises GossamerError: a crawl runs, or the checkpoint cannot be read."""
    return JobDone(go_back(directory, read_form("restore", body, Restore).name, changing=0.0))


def log_tail(directory: Path) -> LogTail:
    """The end of a crawl's logs; empty where there are none. Raises UsageError: the directory holds no crawl."""
    begun_crawl(directory)
    visits = []
    for line in last_lines(directory / LOG_PATH, TAIL):
        with contextlib.suppress(ValueError):  # the first line is torn, and others tell of no visit
            visits.append(msgspec.json.decode(line, type=LogLine))
    said = [line.decode("utf-8", "replace") for line in last_lines(directory / CONSOLE, TAIL)]
    return LogTail(visits[::-1][:LINES], said[-LINES:])


#: Options of a crawl that goes on or replaces another, and those that say something only beside an option that names a file, as
#: `item_key` does beside `items`, and `mobile_content` beside `runtime`.
NOT_OF_A_FORM = frozenset(
    ("resume", "overwrite", "accept_loss", "release", "item_columns", "item_key", "item_formulas", "mobile", "mobile_content",
     "mobile_elements", "irrelevant")
)  # fmt: skip

#: Schemes of seeds: those of servers. A `file:` seed would name files.
SCHEMES = ("http", "https", "ftp", "gopher")

#: The form of a new directory's name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Value = str | bool | list[str]


class StartOption(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """Its type in words, as `a whole number`."""
    default: Any
    unit: str
    bounds: str
    doc: str
    words: tuple[str, ...]
    """The words that it takes, where it takes words of a closed list."""
    is_many: bool
    """It takes several values."""


class StartForm(msgspec.Struct, frozen=True):
    folders: list[str]
    """The folders in which a crawl can be started; empty where the dashboard shows single crawls alone."""
    options: list[StartOption]


class NewCrawl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: Annotated[str, msgspec.Meta(max_length=4096)]
    seeds: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]], msgspec.Meta(min_length=1, max_length=1_000)
    ]
    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """The name of its directory; empty: the command chooses it."""
    options: dict[str, Value] = {}


class StartedCrawl(msgspec.Struct, frozen=True):
    done: str
    key: str
    """The key of the crawl in addresses; empty where it left nothing."""
    command: str
    """The command that does the same, without the passwords of seeds."""


#: The user in a seed.
_USER = re.compile(r"(?<=://)[^/?#\\]*@")


def start_form(folders: Sequence[Path]) -> StartForm:
    return StartForm([str(folder) for folder in folders], [_option(one) for one in offered_options()])


def offered_options() -> list[Property]:
    return [one for one in properties(all_options()) if not one.names and one.name not in NOT_OF_A_FORM]


def start(folders: Sequence[Path], body: bytes) -> StartedCrawl:
    """Start a crawl as the form says.
    Raises UsageError: the form is none, names what it may not, or the command refuses it; says why."""
    form = read_form("start", body, NewCrawl)
    for seed in form.seeds:
        if "://" not in seed or scheme_of(seed) not in SCHEMES:
            raise UsageError(f"seed {seed[:200]!r}: write it in full, as https://example.org/")
    _judge(form.options)
    folder = next((one for one in folders if str(one) == form.folder), None)
    if folder is None:
        raise UsageError("this dashboard starts crawls in the folders that it shows, and in no other")
    today = datetime.datetime.now().astimezone().date()
    name = form.name.strip() or re.sub(r"[^A-Za-z0-9._-]", "-", default_directory(read_seeds(form.seeds), today))
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"name {name!r}: take letters, digits, dots, hyphens and underscores; begin with a letter or digit"
        )
    directory = folder / name
    try:
        # It is made here, so that of two forms with one name the second is refused, and none is told of the other's crawl.
        directory.mkdir()
    except FileExistsError:
        holds = "holds a crawl" if (directory / CRAWL_FILE).exists() else "is there already"
        raise UsageError(f"{directory} {holds}; give the new crawl another name") from None
    except OSError as error:
        raise UsageError(f"{directory} cannot be made: {error.strerror or error}") from None
    try:
        # The command refuses a directory that holds anything, so that what it says lies beside it until it has begun.
        number, log = tempfile.mkstemp(prefix=f".{name}-", suffix=".log", dir=folder)
        beside = Path(log)
        with os.fdopen(number, "wb") as console:
            # Seeds and header fields may hold secrets, so that they are no arguments.
            given = tomli_w.dumps({"seeds": form.seeds, "crawl": form.options}).encode()
            beginning = begin(["crawl", f"--output={directory}", "--config=-"], directory, console, given)
        line = ["crawl", *_words(form.options), f"--output={directory}", "--", *form.seeds]
        command = shlex.join(["gossamer", *(_USER.sub("USER:PASSWORD@", word) for word in line)])
        if (directory / CRAWL_FILE).is_file() and not beginning.has_failed:
            said = said_since(beside, 0).partition("\n")[0]
            (directory / CONSOLE).parent.mkdir(exist_ok=True)
            beside.replace(directory / CONSOLE)
            done = f"the crawl has ended: {said}" if beginning.status is not None else "the crawl has begun"
            return StartedCrawl(
                f"{done}, as process {beginning.process}" if beginning.is_listening else done,
                key_of(directory),
                command,
            )
        if beginning.status is None:
            return StartedCrawl(
                f"the crawl is about to begin; its messages are in {beside}", key_of(directory), command
            )
        said = said_since(beside, 0)
        beside.unlink(missing_ok=True)
        raise UsageError(said or f"gossamer crawl ended with status {beginning.status}")
    except UsageError:
        with contextlib.suppress(OSError):  # it may hold what the command has left there
            directory.rmdir()
        raise


def _option(one: Property) -> StartOption:
    default = None if one.default is msgspec.NODEFAULT else msgspec.to_builtins(one.default)
    is_many = one.type.startswith("tuple")
    return StartOption(one.name, one.kind, default, one.unit, one.bounds, one.doc, one.words, is_many)


def _judge(given: dict[str, Value]) -> None:
    """Check each value, for a message that names its field. Raises UsageError: one does not do."""
    known = {one.name: one for one in offered_options()}
    for name in given:
        if name not in known:
            raise UsageError(f"a form has no option {name!r}{nearest(name, known)}")
    try:
        build(all_options(), {name: _plain(known[name], value) for name, value in given.items()})
    except SettingError as error:
        raise UsageError(str(error)) from None


def _words(given: dict[str, Value]) -> list[str]:
    """The options as the command line takes them."""
    words: list[str] = []
    for name, value in given.items():
        option = option_name(name)
        if isinstance(value, bool):
            words += [option] if value else []
        else:
            words += [f"{option}={one}" for one in ([value] if isinstance(value, str) else value)]
    return words


def _plain(one: Property, value: Value) -> Value:
    if isinstance(value, bool) != (one.type == "bool") or isinstance(value, list) != one.type.startswith("tuple"):
        raise UsageError(f"{one.name}: is {one.kind}")
    return value

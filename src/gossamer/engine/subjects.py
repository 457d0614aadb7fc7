"""Subjects: the one door by which a package joins Gossamer, whether it ships with Gossamer or comes from elsewhere.

Place in the flow: a subject is one folder with everything of one matter (recrawl, mobile crawlers, search). Its
`__init__.py` declares a :class:`Subject`, which names all that it adds: options, a wiring, commands, units, tables, pages.
Command line, compiling, catalog, tables and dashboard ask here and know no subject by name. Everything is named as
`module:attribute` and is imported when it is used, so that a declaration costs nothing. A package of a stranger declares the
same value and offers it by an entry point of the group :data:`GROUP`::

    [project.entry-points."gossamer.subjects"]
    tides = "gossamer_tides:SUBJECT"

Promises: a name belongs to one subject, and a subject that claims a taken name is refused with the names of both; what
ships is found without a look at what is installed.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from gossamer.engine.errors import UnknownName, WiringError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The entry point group by which other packages offer their subjects.
GROUP = "gossamer.subjects"

#: The packages of the subjects that ship, in the order in which their options stand in the help and their wirings are
#: filled in: focus and importance change which page comes first, the recrawl puts its ledger in front, and what divides a
#: crawl comes last.
SHIPPED = (
    "gossamer.labs",
    "gossamer.recrawl",
    "gossamer.spiders",
    "gossamer.rdf",
    "gossamer.browser",
    "gossamer.search",
    "gossamer.words",
    "gossamer.sinks",
    "gossamer.mobile",
    "gossamer.backup",
    "gossamer.agents",
)


class Command(NamedTuple):
    """A command of the command line."""

    place: str
    """`module:function`, a click command."""
    text: str
    """One line of help."""
    group: str
    """Under which heading of `gossamer --help` it stands, as `Ask a crawl`; a new one stands behind the others."""


class Subject(NamedTuple):
    """Everything that one subject adds to Gossamer; each part may be left out. Places are written `module:attribute`."""

    name: str
    title: str
    """The heading of its options in `gossamer crawl --help`, as `Mobile crawlers`."""
    example: str = ""
    """A command that uses these options, for the help."""
    options: str = ""
    """A :class:`~gossamer.engine.sheet.Sheet`: options of `crawl`, of configuration files and of `gossamer.crawl()`."""
    wire: str = ""
    """A function that gets the :class:`~gossamer.crawls.builder.Builder` of each crawl and changes its wiring."""
    wire_where: tuple[str, ...] | None = None
    """Options of the core that `wire` looks at beside the subject's own. It is called only if one of all these is not as usual, or
    the wiring has a unit of the subject, so that other crawls do not import it; None calls it for each crawl."""
    commands: Mapping[str, Command] = MappingProxyType({})
    components: Mapping[str, str] = MappingProxyType({})
    """Components by the names that wirings use, as `package.module:Class`."""
    providers: Mapping[str, str] = MappingProxyType({})
    """Providers by the names that wirings use. A politeness rule is one of these; see :mod:`gossamer.frontier.contract`."""
    tables: Mapping[str, str] = MappingProxyType({})
    """Declarations of tables by their names."""
    pages: Mapping[str, str] = MappingProxyType({})
    """Pages of the dashboard by their titles: functions from the directory of a crawl to a
    :class:`~gossamer.dashboard.contract.DashboardPage`."""
    beside: Mapping[str, str] = MappingProxyType({})
    """The work of the subject beside a crawl whose wiring uses a unit of this name: heirs of
    :class:`~gossamer.crawls.companions.Beside`."""
    forget: str = ""
    """A function that takes out of a crawl at rest what the subject itself keeps of a URL or host that is deleted; it finds what it
    did before gone. It gets the crawl directory, the open ledgers, the target and the names of the hosts that go whole, and
    returns how many queued tasks that were. See :mod:`gossamer.analysis.removals`."""
    clusters: Mapping[str, str] = MappingProxyType({})
    """Clusters by the names that `--cluster` takes: functions from a :class:`~gossamer.agents.contract.ClusterNeeds` to a
    :class:`~gossamer.agents.contract.Cluster`."""
    far_commands: Mapping[str, str] = MappingProxyType({})
    """By the names of clusters that run commands on their own machines: functions from the words of a command and the name of a
    crawl there, as `CLUSTER:NAME` has it, to an exit status. Without a name, the command supervises a crawl of its own, and gets
    `given` as its standard input; where it is at work already, the function answers None, and it goes on."""
    far_tasks: Mapping[str, str] = MappingProxyType({})
    """By the names of clusters that run functions of installed packages on their machines: functions from the place of one, from
    bytes to bytes, and from many bytes, to an iterator of its answers in their order."""
    far_archive: str = ""
    """A function that opens an archive file, by its path, that is not on the disk but where the subject keeps it; with `whole`, it
    first looks for all of it."""


@lru_cache(maxsize=1)
def shipped() -> tuple[Subject, ...]:
    return tuple(importlib.import_module(package).SUBJECT for package in SHIPPED)


def subjects() -> tuple[Subject, ...]:
    """All subjects: those that ship, then those of installed packages by their names. Raises WiringError: a package offers
    something else than a subject, or a name that another subject has."""
    return (*shipped(), *installed())


def installed() -> tuple[Subject, ...]:
    """The subjects of installed packages. Raises WiringError: as :func:`subjects`."""
    return _installed(tuple(sys.path))


@lru_cache(maxsize=1)
def _installed(folders: tuple[str, ...]) -> tuple[Subject, ...]:
    taken = {(part, name): one.name for one in shipped() for part, name in _names(one)}
    found = []
    for entry in sorted(offered(GROUP), key=lambda entry: entry.name):
        package, one = package_of(entry), loaded(entry, "subject")
        if not isinstance(one, Subject):
            raise WiringError(f"subject {entry.name!r} of package {package} is no Subject: {entry.value}")
        for part, name in _names(one):
            if (other := taken.setdefault((part, name), one.name)) != one.name:
                raise WiringError(f"package {package}: {part} {name!r} is taken by subject {other!r}; rename it")
        found.append(one)
    return tuple(found)


def _names(one: Subject) -> Iterator[tuple[str, str]]:
    """All names that a subject claims, each with the kind of thing that it names."""
    yield "subject", one.name
    for part in ("commands", "components", "providers", "tables", "pages", "clusters"):
        for name in getattr(one, part):
            yield part.removesuffix("s"), name


def found_at(place: str) -> Any:
    """The object at `module:attribute`. Raises UnknownName: nothing does."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnknownName(f"{place} cannot be loaded: {error}") from error


def offered(group: str, name: str | None = None) -> "list[EntryPoint]":
    """Entry points of a group of what is installed, or those of one name in it."""
    if f"[{group}]" not in _entry_points_text(tuple(sys.path)):
        return []
    from importlib.metadata import entry_points  # it takes 35 ms to load

    return list(entry_points(group=group) if name is None else entry_points(group=group, name=name))


def package_of(entry: "EntryPoint") -> str:
    return entry.dist.name if entry.dist else entry.value


def loaded(entry: "EntryPoint", kind: str) -> Any:
    """The object of an entry point, which is a `kind` of thing. Raises UnknownName: it cannot be imported."""
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownName(f"{kind} {entry.name!r} of package {package_of(entry)} cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def _entry_points_text(folders: tuple[str, ...]) -> str:
    """The entry points of all installed packages that speak of Gossamer, as one text: most commands find it empty within 2 ms."""
    texts = []
    for folder in dict.fromkeys(folders):
        try:
            entries = [
                entry.path for entry in os.scandir(folder or ".") if entry.name.endswith((".dist-info", ".egg-info"))
            ]
        except OSError:
            continue
        for path in entries:
            try:
                with open(f"{path}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123  # a hundred times at each start
                    text = file.read()
            except (OSError, UnicodeDecodeError):
                continue
            if "[gossamer." in text:
                texts.append(text)
    return "\n".join(texts)

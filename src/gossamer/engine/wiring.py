"""The wiring: a plan of units and connectors as data, read from TOML (Hunyadi 2007, appendix A, without recompiling anything).

::

    [providers.dns]
    use = "system-resolver"

    [connectors.tasks]
    address = "local:"            # or fused:, priority:FIELD, unix:PATH, tcp:HOST:PORT, or a scheme of your own
    capacity = 256

    [components.fetch]
    use = "fetch"                 # a registered name
    workers = 64                  # of them at work at once, at most
    idle = 10                     # seconds after which those that are not needed end
    instances = 1                 # of the whole unit
    process = "main"              # where it runs
    on_error = "stop"             # or "restart", "skip"
    ports = { tasks = "tasks", visits = "fetched" }
    providers = { protocols = { http = "http", https = "http" } }
    settings = { timeout = "120s" }

Here the text becomes a value, and is refused if it does not have this form. Whether its names exist and its types fit is
for :mod:`gossamer.engine.planning` to say; nothing is started before both agree.

Differences between wirings, as values: what a change of a running graph is, what undoes it, and how a file says it.

A change file has the syntax of a wiring. An entry with `use` (or `address`, for a connector) is a whole plan: it adds a unit
or stands in the place of the one that has its name. An entry without it changes the keys that it names, one by one within
`ports`, `providers`, `settings` and `options`. `remove` lists what goes::

    remove = ["components.mark", "connectors.marked"]

    [components.url-seen]
    ports = { inbox = "filtered" }

:meth:`~gossamer.engine.running.RunningGraph.apply` carries out what stands here; this module only computes.
"""

import re
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zlib import crc32

import msgspec
import tomli_w

from gossamer.engine.connector import DEFAULT_CAPACITY
from gossamer.engine.errors import BrokenWiring, UnknownName, WiringError
from gossamer.engine.files import replace_file, text_in, toml_of
from gossamer.engine.sheet import in_words, nearest

#: The process that a plan starts in; others are started by it.
MAIN_PROCESS = "main"

#: Texts of a list above which it is long, what is plain enough to be written as it is, and the word that stands for such a list.
_MANY = 1_000
_IS_PLAIN = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]*").fullmatch
_LONG = "a long list, number "
_WRITTEN = re.compile(r'^((?:"[^"\n]*"|[\w-]+) = \[\n)((?: +"[\x20\x21\x23-\x5b\x5d-\x7e]*",\n)+)(\])$', re.MULTILINE)

#: A unit's name stands in keys, messages and drawings: nothing in it may need quoting.
_NAME = re.compile(r"[A-Za-z0-9_-]+")

#: The first and the last line of a plan that was written: where the first stands without the last, the file was cut.
_FIRST = "# gossamer: the last line of this file says that it is whole"
_LAST = "# gossamer: whole"

#: The line before the last holds a sum of all above it, so that a changed byte is found.
_SUM = "# gossamer: sum "

Names = dict[str, str | list[str]]

OnError = typing.Literal["stop", "restart", "skip"]
_ON_ERROR: tuple[str, ...] = typing.get_args(OnError)


class ProviderPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One provider: which, with what, how set."""

    use: str
    providers: dict[str, str | Names] = {}
    settings: dict[str, Any] = {}


class ConnectorPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One connector. Its item type is what its ends declare."""

    address: str = "local:"
    capacity: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_CAPACITY
    options: dict[str, Any] = {}
    """Options of the address scheme, as `batch` or `journal`."""


class ComponentPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One component: which, how many, where, and what its ports and roles are bound to."""

    use: str
    ports: dict[str, str] = {}
    providers: dict[str, str | Names] = {}
    settings: dict[str, Any] = {}
    workers: Annotated[int, msgspec.Meta(ge=1)] = 1
    """The most that are at work at once: the pool grows while all are busy."""
    instances: Annotated[int, msgspec.Meta(ge=1)] = 1
    process: str = MAIN_PROCESS
    on_error: OnError | None = None
    """Not said: `stop` for what ships; `skip` for others, where an item can go on without the component."""
    restarts: Annotated[int, msgspec.Meta(ge=0)] = 3
    errors: Annotated[int, msgspec.Meta(ge=0)] = 100
    """Items that `skip` may set aside in one run; the next one stops the graph."""
    idle: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Seconds after which idle workers end."""


class Wiring(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole plan. Names are the wiring's own; `use` names what is registered."""

    providers: dict[str, ProviderPlan] = {}
    connectors: dict[str, ConnectorPlan] = {}
    components: dict[str, ComponentPlan] = {}
    description: str = ""
    source: str = "wiring"
    """Where it was read from, for messages."""

    @property
    def processes(self) -> tuple[str, ...]:
        """Every process that the plan speaks of, the main one first."""
        names = {plan.process for plan in self.components.values()} | {MAIN_PROCESS}
        return (MAIN_PROCESS, *sorted(names - {MAIN_PROCESS}))

    def only(self, use: str, needs: str) -> str:
        """The name of the only component of a use. Raises WiringError: there is none, or several; `needs` says who needs one."""
        names = [name for name, plan in self.components.items() if plan.use == use]
        if len(names) != 1:
            raise WiringError(f"{self.source}: {len(names)} components use {use!r}; {needs} exactly one")
        return names[0]

    def check_free(self, needs: str, **tables: Iterable[str]) -> None:
        """Refuse names, by table, that something else of the wiring bears. Raises WiringError; `needs` says who needs them."""
        for table, names in tables.items():
            if taken := sorted({*names} & getattr(self, table).keys()):
                raise WiringError(f"{self.source}: {', '.join(taken)}: {needs} this name; choose another one")


#: The tables of a wiring, and the plans in them.
TABLES: dict[str, type[msgspec.Struct]] = {
    "providers": ProviderPlan,
    "connectors": ConnectorPlan,
    "components": ComponentPlan,
}


def parse(text: str, source: str = "wiring") -> Wiring:
    """Read a plan from TOML text.

    Raises:
        BrokenWiring: it is cut, or no TOML.
        WiringError: it is not of the form above; names source, key, what is wrong, what would be right.
    """
    is_written = text.startswith(_FIRST) or (bool(text) and _FIRST.startswith(text))
    if is_written and not text.rstrip().endswith(_LAST):
        raise BrokenWiring(f"{source} is cut: its last line {_LAST!r} is missing")
    long: list[list[str]] = []

    def lift(match: re.Match[str]) -> str:
        if match[2].count("\n") <= _MANY:
            return match[0]
        long.append([line.strip()[1:-2] for line in match[2].splitlines()])
        return f'{match[1]}"{_LONG}{len(long) - 1}"{match[3]}'

    # Long lists of what we have written are read here, ten times as fast.
    plain = toml_of(_WRITTEN.sub(lift, text) if is_written else text, source, BrokenWiring)
    return from_plain(_put_back(plain, long), source)


def _put_back(value: Any, long: list[list[str]]) -> Any:
    if not long:
        return value
    if isinstance(value, dict):
        return {key: _put_back(inner, long) for key, inner in value.items()}
    if isinstance(value, list) and len(value) == 1 and str(value[0]).startswith(_LONG):
        return long[int(value[0].removeprefix(_LONG))]
    return value


def read(path: Path) -> Wiring:
    """Read a plan from a file.

    Raises:
        BrokenWiring: it cannot be read, or as :func:`parse`.
        WiringError: as :func:`parse`.
    """
    return parse(text_in(path, BrokenWiring), str(path))


def write(path: Path, wiring: Wiring, *, is_private: bool = False) -> None:
    """Write a plan beside its place, then into it: whatever kills us, a whole one stands there, as closed as before.

    Args:
        path: the file.
        wiring: the plan.
        is_private: it is its owner's alone to read, whatever stood there.

    Raises:
        OSError: it cannot be written; what stood there stands there.
    """
    mode = 0o600 if is_private else path.stat().st_mode & 0o777 if path.exists() else 0o666
    text = f"{_FIRST}\n{to_toml(wiring)}".encode()
    replace_file(path, text + f"{_SUM}{crc32(text):08x}\n{_LAST}\n".encode(), sync=True, mode=mode)


def is_as_written(path: Path) -> bool:
    """Whether a plan is what :func:`write` wrote: a person has edited it otherwise, or a byte has changed. True where an older
    version wrote it, which kept no sum, and where a person wrote it whole. Raises OSError: it cannot be read."""
    text = path.read_bytes()
    is_ours = text.startswith(_FIRST.encode()) or text.endswith(f"{_LAST}\n".encode())
    if not is_ours or sum(line.startswith(b"#") for line in text.splitlines()) <= len((_FIRST, _LAST)):
        return True
    before, _, after = text.rpartition(_SUM.encode())
    return after == f"{crc32(before):08x}\n{_LAST}\n".encode()


def from_plain(plain: dict[str, Any], source: str = "wiring") -> Wiring:
    """A plan from plain dictionaries, as TOML gives them. Raises WiringError: not of the form above; names source, key, what
    is wrong, what would be right."""
    known = {*TABLES, "description"}
    for key in plain:
        if key not in known:
            raise WiringError(f"{source}: unknown key {key!r}{nearest(key, known)}")
    tables: dict[str, dict[str, Any]] = {}
    for table in TABLES:
        entries = plain.get(table, {})
        if not isinstance(entries, dict):
            raise WiringError(f"{source}: {table}: is {entries!r}; it is a table of tables, as [{table}.NAME]")
        # Each entry is read by itself: so a message can name it.
        tables[table] = {name: read_entry(entry, table, name, source) for name, entry in entries.items()}
    description = plain.get("description", "")
    if not isinstance(description, str):
        raise WiringError(f"{source}: description: is {description!r}; it is a text")
    return Wiring(**tables, description=description, source=source)


def read_entry(entry: Any, table: str, name: str, source: str) -> Any:
    """The plan of one unit or connector, from plain dictionaries. Raises WiringError: not of the form above; names source,
    key, what is wrong, what would be right."""
    key, plan = f"{table}.{name}", TABLES[table]
    if not _NAME.fullmatch(name):
        raise WiringError(f"{source}: {key}: a name is made of letters, digits, - and _")
    if not isinstance(entry, dict):
        raise WiringError(
            f"{source}: {key}: is {entry!r}; it is a table with the keys {', '.join(plan.__struct_fields__)}"
        )
    for inner in entry:
        if inner not in plan.__struct_fields__:
            raise WiringError(f"{source}: {key}: unknown key {inner!r}{nearest(inner, plan.__struct_fields__)}")
    try:
        return msgspec.convert(entry, plan)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$")
        inner = where.strip("`.").split("[")[0]
        right = f"; one of: {', '.join(_ON_ERROR)}" if inner == "on_error" else ""
        at = f"{key}.{inner}" if inner else key
        raise WiringError(f"{source}: {at}: {in_words(reason)}{right}") from None


def to_toml(wiring: Wiring) -> str:
    plain = typing.cast("dict[str, Any]", msgspec.to_builtins(wiring))
    plain.pop("source", None)
    long: list[list[str]] = []
    text = tomli_w.dumps(_without_none(plain, long))
    for number, lines in enumerate(long):
        text = text.replace(f'"{_LONG}{number}",\n', '",\n    "'.join(lines).join(('"', '",\n')))
    return text


def _without_none(value: Any, long: list[list[str]]) -> Any:
    """TOML has no null: a setting that is None is its default, and left out.

    A long list of plain texts, as that of seeds, is written here, ten times as fast: `long` gets it, once, and a word is left.
    """
    if isinstance(value, dict):
        return {key: _without_none(inner, long) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        is_text = len(value) > _MANY and (value in long or set(map(type, value)) == {str})
        if is_text and (value in long or _IS_PLAIN("".join(value)) is not None):
            if value not in long:
                long.append(value)
            return [f"{_LONG}{long.index(value)}"]
        return [_without_none(inner, long) for inner in value]
    return value


def with_settings(wiring: Wiring, unit: str, values: dict[str, Any]) -> Wiring:
    """A copy in which a component's or provider's settings are replaced where `values` names them. Raises WiringError: the
    plan has no such unit."""
    for table in ("components", "providers"):
        plans = getattr(wiring, table)
        if unit in plans:
            plan = plans[unit]
            changed = msgspec.structs.replace(plan, settings={**plan.settings, **values})
            return msgspec.structs.replace(wiring, **{table: {**plans, unit: changed}})
    raise WiringError(
        f"{wiring.source}: there is no unit {unit!r}{nearest(unit, [*wiring.components, *wiring.providers])}"
    )


Plan = ProviderPlan | ConnectorPlan | ComponentPlan
P = TypeVar("P", bound=msgspec.Struct)

#: The key that makes an entry a whole plan, for each table.
_WHOLE = {"providers": "use", "connectors": "address", "components": "use"}


class ChangedEntry(msgspec.Struct, frozen=True):
    """One unit or connector before and after; None where it does not exist."""

    table: str
    name: str
    before: Plan | None
    after: Plan | None

    @property
    def told(self) -> str:
        verb = "adds" if self.before is None else "removes" if self.after is None else "changes"
        return f"{verb} {self.table[:-1]} {self.name!r}"


class Difference(msgspec.Struct, frozen=True):
    """The difference between two wirings."""

    entries: tuple[ChangedEntry, ...] = ()

    @staticmethod
    def between(before: Wiring, after: Wiring) -> "Difference":
        """The steps from one wiring to another."""
        found = []
        for table in TABLES:
            old, new = getattr(before, table), getattr(after, table)
            found += [
                ChangedEntry(table, name, old.get(name), new.get(name))
                for name in dict.fromkeys((*old, *new))
                if old.get(name) != new.get(name)
            ]
        return Difference(tuple(found))

    @property
    def opposite(self) -> "Difference":
        return Difference(
            tuple(ChangedEntry(one.table, one.name, one.after, one.before) for one in reversed(self.entries)),
        )

    @property
    def told(self) -> str:
        return ", ".join(entry.told for entry in self.entries) or "changes nothing"

    def applied(self, wiring: Wiring) -> Wiring:
        """A copy of a wiring with this difference. Later changes elsewhere, as of another setting of a unit, stay.
        Raises WiringError: the wiring lacks what is to be changed or removed, or has what is to be added."""
        for entry in self.entries:
            plans = dict(getattr(wiring, entry.table))
            if (entry.before is None) == (entry.name in plans):
                state = "exists already" if entry.name in plans else "is no longer there"
                raise WiringError(
                    f"{entry.table}.{entry.name} {state}; this change does not fit the graph as it stands"
                )
            if entry.after is None:
                del plans[entry.name]
            elif entry.before is None:
                plans[entry.name] = entry.after
            else:
                plans[entry.name] = _merged(plans[entry.name], entry.before, entry.after)
            wiring = msgspec.structs.replace(wiring, **{entry.table: plans})
        return wiring


def _merged(now: P, before: Any, after: Any) -> P:
    fields: dict[str, Any] = {}
    for field in now.__struct_fields__:
        old, new, here = getattr(before, field), getattr(after, field), getattr(now, field)
        if old == new:
            continue
        if isinstance(here, dict):
            kept = {key: value for key, value in here.items() if key not in old or key in new}
            fields[field] = {**kept, **{key: value for key, value in new.items() if old.get(key) != value}}
        else:
            fields[field] = new
    return msgspec.structs.replace(now, **fields)


def changed(wiring: Wiring, text: str, source: str = "change") -> Wiring:
    """A wiring with a change file's entries, and with the file as the source that messages name. Raises WiringError: it is no
    TOML or not of the form above, or it names what is not there; says which key."""
    plain = toml_of(text, source, WiringError)
    known = {*TABLES, "remove"}
    for key in plain:
        if key not in known:
            raise WiringError(f"{source}: unknown key {key!r}{nearest(key, known)}")
    wiring = _without(wiring, plain.pop("remove", []), source)
    for table, entries in plain.items():
        if not isinstance(entries, dict):
            raise WiringError(f"{source}: {table}: is {entries!r}; it is a table of tables, as [{table}.NAME]")
        plans = dict(getattr(wiring, table))
        for name, entry in entries.items():
            whole = entry
            if name in plans and isinstance(entry, dict) and _WHOLE[table] not in entry:
                whole = msgspec.to_builtins(plans[name])
                for key, value in entry.items():
                    whole[key] = {**whole.get(key, {}), **value} if isinstance(value, dict) else value
            plans[name] = read_entry(whole, table, name, source)
        wiring = msgspec.structs.replace(wiring, **{table: plans})
    return msgspec.structs.replace(wiring, source=source)


def _without(wiring: Wiring, names: Any, source: str) -> Wiring:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise WiringError(f'{source}: remove: is {names!r}; it is a list of names, as ["components.mark"]')
    for name in names:
        table, _, bare = name.rpartition(".")
        if table and table not in TABLES:
            raise WiringError(f"{source}: remove: {name!r} names no table{nearest(table, TABLES)}")
        found = [one for one in TABLES if bare in getattr(wiring, one) and one in (table or one)]
        if not found:
            every = [f"{one}.{key}" for one in TABLES for key in getattr(wiring, one)]
            raise UnknownName(f"{source}: remove: there is no {name!r}{nearest(name, every)}")
        if len(found) > 1:
            which = " or ".join(f"{one}.{bare}" for one in found)
            raise WiringError(f"{source}: remove: {name!r} can be more than one thing; write {which}")
        plans = dict(getattr(wiring, found[0]))
        del plans[bare]
        wiring = msgspec.structs.replace(wiring, **{found[0]: plans})
    return wiring

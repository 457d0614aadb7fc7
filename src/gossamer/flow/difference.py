"""Differences between wirings, as values: what a change of a running graph is, what undoes it, and how a file says it.

A change file has the syntax of a wiring. An entry with `use` (or `address`, for a connector) is a whole plan: it adds a unit
or stands in the place of the one that has its name. An entry without it changes the keys that it names, one by one within
`ports`, `providers`, `settings` and `options`. `remove` lists what goes::

    remove = ["components.mark", "connectors.marked"]

    [components.url-seen]
    ports = { inbox = "filtered" }

:meth:`~gossamer.flow.running.RunningGraph.apply` carries out what stands here; this module only computes.
"""

import tomllib
from typing import Any, TypeVar

import msgspec

from gossamer.flow.errors import UnknownName, WiringError
from gossamer.flow.sheet import nearest
from gossamer.flow.wiring import TABLES, ComponentPlan, ConnectorPlan, ProviderPlan, Wiring, read_entry

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
        """In words, as `adds component 'mark'`."""
        verb = "adds" if self.before is None else "removes" if self.after is None else "changes"
        return f"{verb} {self.table[:-1]} {self.name!r}"


class Difference(msgspec.Struct, frozen=True):
    """What differs between two wirings."""

    entries: tuple[ChangedEntry, ...] = ()

    @staticmethod
    def between(before: Wiring, after: Wiring) -> "Difference":
        """What leads from one wiring to another."""
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
        """What undoes it."""
        return Difference(
            tuple(ChangedEntry(one.table, one.name, one.after, one.before) for one in reversed(self.entries)),
        )

    @property
    def told(self) -> str:
        """In words; `changes nothing` where it is empty."""
        return ", ".join(entry.told for entry in self.entries) or "changes nothing"

    def applied(self, wiring: Wiring) -> Wiring:
        """A copy of a wiring with this difference. What was changed elsewhere since, as another setting of a unit, stays.

        Raises:
            WiringError: the wiring lacks what is to be changed or removed, or has what is to be added.
        """
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
    """A plan as it stands, with what differs between two others."""
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
    """A wiring with a change file's entries, and with the file as the source that messages name.

    Raises:
        WiringError: it is no TOML or not of the form above, or it names what is not there; says which key.
    """
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WiringError(f"{source}: not TOML: {error}") from None
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
            is_part = name in plans and isinstance(entry, dict) and _WHOLE[table] not in entry
            whole = _filled(msgspec.to_builtins(plans[name]), entry) if is_part else entry
            plans[name] = read_entry(whole, table, name, source)
        wiring = msgspec.structs.replace(wiring, **{table: plans})
    return msgspec.structs.replace(wiring, source=source)


def _filled(old: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    return {
        **old,
        **{key: {**old.get(key, {}), **value} if isinstance(value, dict) else value for key, value in entry.items()},
    }


def _without(wiring: Wiring, names: Any, source: str) -> Wiring:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise WiringError(f'{source}: remove: is {names!r}; it is a list of names, as ["components.mark"]')
    for name in names:
        table, plans = _place(wiring, name, source)
        del plans[name.rpartition(".")[2]]
        wiring = msgspec.structs.replace(wiring, **{table: plans})
    return wiring


def _place(wiring: Wiring, name: str, source: str) -> tuple[str, dict[str, Any]]:
    """The table that a name to be removed belongs to, and a copy of its plans."""
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
    return found[0], dict(getattr(wiring, found[0]))

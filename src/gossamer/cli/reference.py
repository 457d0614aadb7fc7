"""The reference, generated: commands, options, units with their settings, connectors' schemes, outcomes, hostile cases, errors.

`./gossamer dev docs` writes these pages to docs/reference/; the check fails when they are stale. Nothing in them is
written by hand, so nothing in them can be wrong by itself.
"""

import inspect
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gossamer.cli.helping import ASKED, EVERYTHING
from gossamer.cli.main import all_commands, commands, find_command
from gossamer.crawls.catalog import catalog
from gossamer.crawls.options import all_options
from gossamer.engine import ends as ports
from gossamer.engine import errors as flow_errors
from gossamer.engine.component import Component
from gossamer.engine.sheet import Sheet, properties, show_quantity
from gossamer.frontier.robots.machine import EFFECTS, EVENTS, POLICIES, RobotsPolicy, to_mermaid
from gossamer.simweb.hostile import CASES, NOT_PLAYED
from gossamer.values import errors as model_errors
from gossamer.values.outcome import MEANINGS, TRAITS, Traits

if TYPE_CHECKING:
    from gossamer.storage.tables.contract import ColumnSpec, TableSpec


#: Signs that would begin a tag, if they were not for a person to read.
_TAG = re.compile(r"<(?=[a-zA-Z/!?])(?!br/?>)")


def pages() -> dict[str, str]:
    made = {
        "commands.md": _commands(),
        "options.md": _page("Options of a crawl", _settings(all_options(installed=False))),
        "units.md": _units(),
        "tables.md": _tables(),
        "outcomes.md": _outcomes(),
        "hostile.md": _hostile(),
        "errors.md": _errors(),
        "robots.md": _robots(),
    }
    rows = [f"- [{text.partition(chr(10))[0].removeprefix('# ')}]({name})" for name, text in made.items()]
    told = "These pages are generated from the code by `./gossamer dev docs`, and a check says when they are stale."
    return {"README.md": _page("Reference", told, "\n".join(rows)), **made}


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(map(_cell, cells)) + " |"

    return "\n".join([line(columns), "|" + "---|" * len(columns), *map(line, rows)])


def _cell(text: str) -> str:
    """A cell of a table; a tag in it is shown, but for the line breaks that cells are made with."""
    parts = text.replace("|", "\\|").split("`")
    parts[::2] = (_TAG.sub("&lt;", part) for part in parts[::2])
    return "`".join(parts)


def _commands() -> str:
    parts = []
    for name in all_commands():
        command = find_command(name)
        context = click.Context(
            command,
            info_name=f"gossamer {name}",
            parent=click.Context(commands, info_name="gossamer", **commands.context_settings),
        )
        context.info_name = name
        context.meta[ASKED] = EVERYTHING
        context.terminal_width = 78  # of whichever terminal makes the page
        parts.append(f"## gossamer {name}\n\n```\n{command.get_help(context)}\n```")
    return _page("Commands", *parts)


def _settings(sheet: type[Sheet]) -> str:
    rows = [
        (
            f"`{p.name}`",
            p.type,
            "" if p.default in (None, "", ()) else f"`{show_quantity(p.default, p.unit)}`",
            ", ".join(filter(None, (p.unit, p.bounds))),
            "restart" if p.reason else "live",
            p.doc,
        )
        for p in properties(sheet)
    ]
    return _table(("setting", "type", "default", "unit, bounds", "changes", "what it does"), rows)


def _units() -> str:
    known = catalog()
    parts = []
    for table in ("components", "providers"):
        for name in known.names(table):
            unit = known.component(name) if table == "components" else known.provider(name)
            declared = ports.declared(unit)
            kind = unit.kind if issubclass(unit, Component) else "provider"
            lines = [f"## {name} ({kind})", inspect.getdoc(unit) or ""]
            ends = [f"`{role}` takes {_name(item)}" for role, item in declared.inputs.items()]
            ends += [f"`{role}` makes {_name(item)}" for role, item in declared.outputs.items()]
            ends += [f"`{role}` uses a {_name(item)}" for role, item in {**declared.uses, **declared.uses_many}.items()]
            if ends:
                lines.append("Ends: " + "; ".join(ends) + ".")
            if properties(unit.sheet_type):
                lines.append(_settings(unit.sheet_type))
            parts.append("\n\n".join(lines))
    return _page("Components and providers", *parts)


def _name(item: object) -> str:
    return getattr(item, "__name__", str(item))


def _outcomes() -> str:
    def marks(traits: Traits) -> list[str]:
        told = (traits.is_answered, traits.has_document, traits.is_error, traits.is_transient)
        return ["yes" if one else "" for one in told]

    rows = [(f"`{outcome}`", *marks(traits)) for outcome, traits in TRAITS.items()]
    text = (
        "The closed list of words for how a fetch ended, the same in log, tables, metrics and JSON. A page is a document of HTML; "
        "`errors` in `status` and in the table `hosts` counts the requests whose outcome is an error."
    )
    headings = ("outcome", "a server answered", "with a document", "an error", "a later try may succeed")
    notes = [(f"`{note}`", meaning) for note, meaning in MEANINGS.items()]
    noted = (
        "## Notes\n\nWords for what an answer has that its standard does not allow, and that was read all the same: in the column "
        "`notes`, in `gossamer why` and `fetch`, and counted by the unit `http` as `note:WORD`."
    )
    return _page("Outcomes", text, _table(headings, rows), noted, _table(("note", "meaning"), notes))


def _robots() -> str:
    """The meaning of every answer to a robots.txt request, by policy, and the machine that goes by it."""
    policies = POLICIES.values()
    meanings = [(f"`{event}`", text, *(str(p.meanings[event]) for p in policies)) for event, text in EVENTS.items()]
    effects = [(f"`{effect}`", text) for effect, text in EFFECTS.items()]
    figures = [
        (f"`{field}`", *(str(getattr(policy, field)) for policy in policies))
        for field in RobotsPolicy.__struct_fields__
        if field not in ("name", "meanings")
    ]
    drawn = [f"## The machine under `{p.name}`\n\n```mermaid\n{to_mermaid(p)}\n```" for p in policies]
    return _page(
        "Robots qualification",
        "This page says how a crawl interprets each answer to a request for robots.txt. The manual is "
        "[docs/robots.md](../robots.md).",
        _table(("answer", "when", *(f"`{policy.name}`" for policy in policies)), meanings),
        _table(("effect", "what it does"), effects),
        "Times are in seconds; 0 failures or seconds means without limit.",
        _table(("figure", *(f"`{policy.name}`" for policy in policies)), figures),
        *drawn,
    )


def _tables() -> str:
    from gossamer.query.schema import documented

    parts = [
        f"## {table.name}\n\n{table.doc}\n\n"
        + _table(
            ("column", "type", "unit", "made by", "what it is"),
            [(f"`{c.name}`", c.type, c.unit, _maker(table, c), c.doc) for c in table.columns],
        )
        for table in documented()
    ]
    text = (
        "These are the tables that `gossamer query` and `export` read. Columns are only ever added. A table that is made of visits "
        "shows the latest visit of each URL; under its name with `_all` behind it, it shows every visit. `gossamer reprocess` "
        "makes anew the columns that processing fills. The manual is [docs/kept.md](../kept.md)."
    )
    return _page("Tables", text, *parts)


def _maker(table: "TableSpec", column: "ColumnSpec") -> str:
    """Which part of a visit a column comes from."""
    if table.page is None:
        return ""
    return "processing" if table.is_made or column.is_made else "fetch"


def _hostile() -> str:
    rows = [(case.number, case.name, case.does, f"`{case.outcome}`", case.then) for case in CASES]
    text = (
        "Lists what a server can do to a crawler: served by `gossamer simweb --hostile`, each case at `/NUMBER/NAME` of one "
        "port (those of TLS on ports of their own), each with the outcome by which a fetch of it has to end. The tests "
        "fetch every one of them, and crawl those that do not make them wait; what a crawl owes besides is tested with "
        "the parts that owe it."
    )
    cases = _table(("case", "name", "the server", "outcome", "a crawl owes besides"), rows)
    others = _table(("faults", "why"), list(NOT_PLAYED.items()))
    return _page(
        "Hostile servers", text, cases, "## Not played\n\nFaults of the same chapters without a server here.", others
    )


def _errors() -> str:
    rows = [
        (f"`{error.__name__}`", str(getattr(error, "exit_code", "")), (inspect.getdoc(error) or "").replace("\n", " "))
        for module in (model_errors, flow_errors)
        for _, error in inspect.getmembers(module, inspect.isclass)
        if issubclass(error, Exception) and error.__module__ == module.__name__
    ]
    return _page("Errors", _table(("error", "exit status", "meaning"), rows))

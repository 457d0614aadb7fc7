"""Programs and components that see every committed visit, and the file of items that a component could not handle.

Place in the flow: :mod:`gossamer.api` subscribes here, and so does code that adds a consumer of records to a wiring; any number
of subscribers stand in one wiring. An item whose component raised under `on_error = "skip"` goes on without it, and its error
becomes a line of `logs/skipped.jsonl`.
"""

import os
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.errors import WiringError
from gossamer.engine.wiring import MAIN_PROCESS, ComponentPlan, ConnectorPlan, Wiring
from gossamer.storage.logs import printable


def with_subscriber(wiring: Wiring, name: str, use: str) -> Wiring:
    """A copy of the wiring in which one more component gets every record; the others get them as before.

    Args:
        wiring: has a component that uses `commit`.
        name: of the new component; nothing in the wiring has it.
        use: its name in the catalog; it takes records at a port `records`.

    Raises:
        WiringError: the wiring has no commit, or something bears the name.
    """
    commit = next((name for name, plan in wiring.components.items() if plan.use == "commit"), "")
    arrow = wiring.components[commit].ports.get("records", "") if commit else ""
    if not arrow:
        raise WiringError(f"{wiring.source}: no component that uses 'commit' sends records")
    before, copied, copier = _parts(name)
    if taken := {name, copier, before, copied} & {*wiring.components, *wiring.connectors}:
        raise WiringError(f"{wiring.source}: {', '.join(sorted(taken))} is in the wiring already; choose another name")
    components = dict(wiring.components)
    plan = components[commit]
    components[commit] = msgspec.structs.replace(plan, ports={**plan.ports, "records": before})
    components[copier] = ComponentPlan(
        use="copy-records", ports={"inbox": before, "outbox": arrow, "copy": copied}, process=plan.process
    )
    components[name] = ComponentPlan(use=use, ports={"records": copied}, process=plan.process)
    connectors = {**wiring.connectors, before: ConnectorPlan(), copied: ConnectorPlan()}
    return msgspec.structs.replace(wiring, components=components, connectors=connectors)


def with_subscribers(wiring: Wiring, names: Iterable[str]) -> Wiring:
    for name in names:
        wiring = with_subscriber(wiring, name, name)
    return wiring


def without_subscribers(wiring: Wiring, names: Iterable[str]) -> Wiring:
    for name in reversed(tuple(names)):
        wiring = _without_subscriber(wiring, name)
    return wiring


def _without_subscriber(wiring: Wiring, name: str) -> Wiring:
    components, connectors = dict(wiring.components), dict(wiring.connectors)
    before, copied, copier = _parts(name)
    copying = components.pop(copier)
    del components[name], connectors[before], connectors[copied]
    for other, plan in components.items():
        if plan.ports.get("records") == before:
            ports = {**plan.ports, "records": copying.ports["outbox"]}
            components[other] = msgspec.structs.replace(plan, ports=ports)
    return msgspec.structs.replace(wiring, components=components, connectors=connectors)


def _parts(name: str) -> tuple[str, str, str]:
    return f"{name}-before", f"{name}-records", f"{name}-copy"


# Items that a component could not handle, for a person to look at.

#: Bytes of an item that are written whole: a visit with a page of the usual size. Of a larger one its beginning is shown.
WHOLE_ITEM = 256_000
SHOWN = 2_000

#: Characters of a traceback: the innermost frames, which say where it happened.
TRACEBACK = 8_000


def setting_aside(directory: Path, process: str = MAIN_PROCESS) -> Callable[[str, Any, Exception], None]:
    """The part that keeps such items of one process of the crawl in a directory."""
    name = "skipped.jsonl" if process == MAIN_PROCESS else f"skipped-{process}.jsonl"
    path = directory / "logs" / name

    def aside(unit: str, item: Any, error: Exception) -> None:
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "unit": unit,
            "error": f"{type(error).__name__}: {error}",
            "traceback": "".join(traceback.format_exception(error))[-TRACEBACK:],
            "item": _written(item),
        }
        path.parent.mkdir(exist_ok=True)
        with open(path, "ab", opener=_for_the_owner) as log:
            log.write(printable(msgspec.json.encode(entry)) + b"\n")

    return aside


def _for_the_owner(path: str, flags: int) -> int:
    """An item may hold a request, and what it sends opens pages."""
    return os.open(path, flags, 0o600)


def _written(item: Any) -> Any:
    try:
        text = msgspec.json.encode(item, enc_hook=repr)
    except (TypeError, ValueError):
        text = b""
    return msgspec.Raw(text) if 0 < len(text) <= WHOLE_ITEM else f"{item!r:.{SHOWN}}"

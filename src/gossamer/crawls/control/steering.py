"""Steering in the crawl's process: a request is carried out, and what it changed is noted.

What changes the crawl is told to `logs/steering.jsonl`, and what must outlive the process (settings, blocked hosts, the graph)
is written into `crawl.toml` before it is answered: a resumed crawl goes by it. What each request does is said where it is
declared (:mod:`~gossamer.crawls.control.messages`); settings have a module of their own (:mod:`settings`), and what several other
requests need stands here.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.crawls.control.steerable import Settable, Steerable
from gossamer.crawls.control.wire import Answered, ControlRequest
from gossamer.engine.errors import SettingError
from gossamer.engine.graph import Graph
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.storage.logs import printable
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.values.task import SetAside

#: Where it stands who changed what, inside the crawl directory: one change a line.
STEERING_LOG = "logs/steering.jsonl"

#: The unit that knows whom not to ask any more, and its setting.
BLOCKING = ("politeness", "blocked")


async def answer(crawl: Steerable, request: ControlRequest) -> Answered:
    """Do what is asked, and note what was changed.

    Raises:
        UsageError: it is for one of several agents.
        GossamerError: it cannot be done, and nothing has changed.
        FlowError: likewise.
    """
    if getattr(request, "agent", ""):
        raise UsageError("this crawl has one agent; leave its name out")
    answered = await request.act(crawl)
    if request.steers:
        note_steering(crawl.directory, request.noted(crawl, answered))
    return answered


def note_steering(directory: Path, done: Mapping[str, Any]) -> None:
    """One line for each change: who steered is the file's owner."""
    entry = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **done}
    path = directory / STEERING_LOG
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as log:
        log.write(printable(msgspec.json.encode(entry)) + b"\n")


# -- hosts that are not asked any more


def blocked(graph: Graph) -> tuple[str, ...]:
    unit, setting = BLOCKING
    node = graph.providers.get(unit)
    return getattr(node.sheet, setting, ()) if node is not None else ()


async def block(crawl: Settable, names: list[str]) -> str:
    """Block hosts and domains; returns what was done, in words.

    Raises:
        UsageError: one is no host or domain.
        SettingError: the crawl has no unit that blocks.
    """
    unit, setting = BLOCKING
    if unit not in crawl.graph.providers:
        raise SettingError(f"this crawl cannot block hosts: it has no unit {unit!r}")
    blocklist = Blocklist(blocked(crawl.graph))
    added = [blocklist.block(name) for name in names]
    await crawl.set(unit, {setting: list(blocklist.lines())})
    told = ", ".join(added[:10]) + (f" and {len(added) - 10} more" if len(added) > 10 else "")
    return f"blocked: {told}; {len(blocklist)} in all"


# -- traps


async def decide(crawl: Settable, aside: "Iterable[SetAside]", confirm: list[str], release: list[str]) -> str:
    """Take a person's word for what is a trap, and what is none; returns what was done, in words.

    Args:
        crawl: the crawl.
        aside: what all its ledgers have set aside.
        confirm: identifiers of families that are traps.
        release: those of families that are none; `all` for every one.

    Raises:
        SettingError: the crawl does not look for traps.
        UsageError: there is no family of such an identifier.
    """
    from gossamer.crawls.trap_review import UNIT, decided

    if UNIT not in crawl.graph.providers:
        raise SettingError(f"this crawl does not look for traps: it has no unit {UNIT!r}")
    settings = msgspec.structs.asdict(crawl.graph.sheet(UNIT))
    await crawl.set(UNIT, decided(settings, aside, confirm, release))
    return "this holds from now on: URLs of confirmed families are refused, URLs of released families are fetched"

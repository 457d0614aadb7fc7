"""What each request does to the crawl, in the crawl's process, on its event loop: short steps that hold nothing up.

What changes the crawl is told to `logs/steering.jsonl`, and what must outlive the process (settings, blocked hosts) is
written into `crawl.toml` before it is answered: a resumed crawl goes by it.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from gossamer.assembly.compiling import SETTINGS, SWITCHES
from gossamer.assembly.control.knowing import known_of
from gossamer.assembly.control.messages import (
    Answered,
    Asked,
    Block,
    Change,
    Checkpoint,
    Checkpoints,
    Continue,
    Decide,
    Done,
    Listed,
    Pause,
    Status,
    Stop,
    Told,
    Why,
)
from gossamer.assembly.control.standing import checkpoint_name, standing_of
from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import HIDDEN, change, nearest, properties, shown
from gossamer.model.errors import UsageError
from gossamer.services.politeness.blocklist import Blocklist
from gossamer.stores.printable import printable

if TYPE_CHECKING:
    from gossamer.assembly.crawl import Crawl

#: Where it stands who changed what, inside the crawl directory: one change a line.
STEERING_LOG = "logs/steering.jsonl"

#: The unit that knows whom not to ask any more, and its setting.
BLOCKING = ("politeness", "blocked")


class Steering:
    """Does what is asked of one crawl."""

    def __init__(self, crawl: "Crawl") -> None:
        self._crawl = crawl

    def __repr__(self) -> str:
        return f"<Steering of {self._crawl!r}>"

    async def answer(self, request: Asked) -> Answered:
        """Do what is asked.

        Raises:
            GossamerError: it cannot be done, and nothing has changed.
            FlowError: likewise.
        """
        match request:
            case Status():
                standing = standing_of(self._crawl, os.getpid(), units=request.units)
                return Told(msgspec.Raw(msgspec.json.encode(standing)))
            case Why():
                return Told(msgspec.Raw(msgspec.json.encode(known_of(self._crawl.ledger, request.url))))
            case Checkpoints():
                return Listed(self._crawl.ledger.checkpoints())
            case _:
                text = self._do(request)
                self._note(request)
                return Done(text)

    def _do(self, request: "Pause | Continue | Stop | Checkpoint | Change | Block | Decide") -> str:
        crawl = self._crawl
        match request:
            case Pause():
                crawl.pause()
                return "paused: nothing more is asked for, what is in flight is finished; `gossamer continue` goes on"
            case Continue():
                crawl.go_on()
                return "the crawl goes on"
            case Stop(now=False):
                crawl.stop()
                return "stopping: what is in flight is finished first"
            case Stop():
                crawl.abort()
                return "stopping at once: what is in flight is asked for again when the crawl is resumed"
            case Checkpoint():
                path = crawl.ledger.checkpoint(request.name or checkpoint_name())
                return f"checkpoint {path.name} is kept"
            case Change():
                return self._change(request.values)
            case Block():
                return self._block(request.names)
            case Decide():
                return self._decide(request)
            case _:
                assert_never(request)

    # -- settings

    def _change(self, values: Mapping[str, str]) -> str:
        by_unit: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            for unit, setting in self._targets(key):
                is_switch = setting in SWITCHES and "." not in key
                by_unit.setdefault(unit, {})[setting] = value not in ("", "none") if is_switch else value
        graph = self._crawl.graph_at_work
        for unit, settings in by_unit.items():
            change(graph.sheet(unit), settings, running=True)
        for unit, settings in by_unit.items():
            self._crawl.set(unit, settings)
        told = [
            f"{unit}.{setting} = {_shown(shown(graph.sheet(unit))[setting])}"
            for unit, settings in by_unit.items()
            for setting in settings
        ]
        return ", ".join(told)

    def _targets(self, key: str) -> tuple[tuple[str, str], ...]:
        """Unit and setting of `UNIT.SETTING`, or those that an option sets.

        Raises:
            UsageError: the crawl has no such unit, or there is no such option.
        """
        nodes = {**self._crawl.graph_at_work.graph.components, **self._crawl.graph_at_work.graph.providers}
        unit, dot, setting = key.rpartition(".")
        if dot:
            if unit not in nodes:
                raise UsageError(f"no unit {unit!r} runs here{nearest(unit, nodes)}")
            return ((unit, setting),)
        option = key.replace("-", "_")
        if option not in SETTINGS:
            raise UsageError(f"no option {key!r} sets a unit{nearest(option, SETTINGS)}; or write UNIT.SETTING")
        targets = SETTINGS[option]
        missing = [unit for unit, _ in targets if unit not in nodes]
        if missing:
            raise UsageError(f"option {key!r} sets unit {missing[0]!r}, and this crawl has none")
        return targets

    def _block(self, names: list[str]) -> str:
        unit, setting = BLOCKING
        if unit not in self._crawl.graph_at_work.providers:
            raise SettingError(f"this crawl cannot block anybody: it has no unit {unit!r}")
        blocklist = Blocklist(self._crawl.blocked)
        added = [blocklist.block(name) for name in names]
        self._crawl.set(unit, {setting: list(blocklist.lines())})
        shown = ", ".join(added[:10]) + (f" and {len(added) - 10} more" if len(added) > 10 else "")
        return f"blocked: {shown}; {len(blocklist)} in all"

    def _decide(self, request: Decide) -> str:
        from gossamer.assembly.suspicions import UNIT, decided

        crawl = self._crawl
        if UNIT not in crawl.graph_at_work.graph.providers:
            raise SettingError(f"this crawl does not look for traps: it has no unit {UNIT!r}")
        settings = msgspec.structs.asdict(crawl.graph_at_work.sheet(UNIT))
        crawl.set(UNIT, decided(settings, crawl.ledger.aside(), request.confirm, request.release))
        return "it holds from now on: what is confirmed is refused, what is released is fetched"

    def _note(self, request: "Pause | Continue | Stop | Checkpoint | Change | Block | Decide") -> None:
        done = msgspec.to_builtins(request)
        if isinstance(request, Change):
            done["values"] = {key: HIDDEN if self._is_secret(key) else value for key, value in request.values.items()}
        note_steering(self._crawl.directory, done)

    def _is_secret(self, key: str) -> bool:
        graph = self._crawl.graph_at_work
        secret = {
            (unit, prop.name)
            for unit, _ in self._targets(key)
            for prop in properties(type(graph.sheet(unit)))
            if prop.secret
        }
        return not secret.isdisjoint(self._targets(key))


def note_steering(directory: Path, done: Mapping[str, Any]) -> None:
    """One line for each change: who steered is the file's owner."""
    entry = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **done}
    path = directory / STEERING_LOG
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as log:
        log.write(printable(msgspec.json.encode(entry)) + b"\n")


def _shown(value: object) -> str:
    return "none" if value is None else msgspec.json.encode(value).decode()

"""`gossamer runtime` as a server: begins, tells of itself, admits senders."""

import time
from pathlib import Path

import msgspec

from gossamer.cli.saying import say_json
from gossamer.cli.telling import shown, tell
from gossamer.engine.sheet import show_bytes, show_count
from gossamer.mobile.runtime.senders import Senders
from gossamer.mobile.runtime.serving import ADDRESS, is_held, read_listening, serve, state_folder
from gossamer.mobile.runtime.standing import HostedCrawler, HostStanding, last_events, read_standing


def host(
    served: tuple[str, ...],
    sheet: str | None,
    allowed: tuple[str, ...],
    listen: str,
    state: str,
    *,
    tls: bool,
    is_weak: bool,
) -> int:
    """Take crawlers until a signal; the exit status."""
    from gossamer.mobile.confined.keeper import ProcessLimits
    from gossamer.mobile.sources.owner import read_sheet

    owners = read_sheet(None if sheet is None else Path(sheet), served)
    owners = msgspec.structs.replace(owners, allow=tuple(dict.fromkeys((*owners.allow, *allowed))))
    folder = state_folder(state)
    listening = read_listening(listen or owners.listen or ADDRESS, tls=tls)
    if not Senders(folder).names:
        tell("no sender is admitted yet; `gossamer runtime admit NAME` makes a key for one")
    serve(owners, listening, folder, _tell_start, limits=ProcessLimits(is_weak=is_weak))
    return 0


def _tell_start(standing: HostStanding) -> None:
    print(f"Listening at {standing.address}", flush=True)
    if standing.pin:
        print(f"Pin: {standing.pin}", flush=True)
    print(f"Isolation: {standing.walls}", flush=True)
    for name, place in standing.hosts.items():
        print(f"Serving {shown(name)} from {shown(place)}", flush=True)


def admit_sender(sender: str, state: str) -> int:
    """Make a key, and say what the sender has to know; the exit status."""
    folder = state_folder(state)
    key = Senders(folder).admit(sender)
    print(key)
    tell(
        f"{sender} is admitted; give it this key, the address of the runtime, and the pin that it prints when it starts"
    )
    return 0


def show_status(state: str, events: int, *, as_json: bool) -> int:
    """Say what a runtime does, or did; the exit status."""
    folder = state_folder(state)
    standing, runs = read_standing(folder), is_held(folder)
    told = last_events(folder / "runtime.jsonl", events)
    if as_json:
        say_json({"running": runs, **msgspec.structs.asdict(standing), "events": told})
        return 0
    print(f"{'Running' if runs else 'Stopped'}, process {standing.pid}, {standing.address}")
    if standing.pin:
        print(f"Pin: {standing.pin}")
    print(f"Isolation: {shown(standing.walls)}{' (weak)' if standing.is_weak else ''}")
    print(
        f"{show_count(len(standing.crawlers), 'crawler')}; {show_bytes(standing.kept)} of results wait for their senders."
    )
    for crawler in standing.crawlers:
        print(_line(crawler, runs=runs))
    for event in told:
        facts = ", ".join(
            f"{name} {shown(str(fact))}" for name, fact in event.items() if name not in ("at", "event") and fact
        )
        print(f"{event.get('at', '')} {shown(str(event.get('event', '')))}: {facts}")
    return 0


def _line(crawler: HostedCrawler, *, runs: bool) -> str:
    state = crawler.state if runs or crawler.state != "running" else "interrupted"
    why = f" ({crawler.reason}: {shown(crawler.told)})" if crawler.reason else ""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(crawler.ended or crawler.accepted))
    return (
        f"{shown(crawler.sender)} {shown(crawler.crawler)}: {state}{why} since {when}, {show_count(crawler.fetched, 'answer')}, "
        f"{show_bytes(crawler.brought)} brought in {_batches(crawler.batches)}, "
        f"{show_bytes(crawler.kept)} kept, {crawler.cpu:g} s of processor time"
    )


def _batches(number: int) -> str:
    return f"{number:,} {'batch' if number == 1 else 'batches'}"

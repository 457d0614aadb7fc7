"""`gossamer runtime`: runs mobile crawlers beside the data, and is the server that takes them from admitted senders."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import msgspec

from gossamer.cli.helping import as_json, opened, option
from gossamer.cli.saying import say_json, shown, tell
from gossamer.engine.errors import refusing
from gossamer.engine.sheet import show_bytes, show_count
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.mobile.crawler import BroughtPage, CrawlerBatch, JourneySummary, MobileCrawler
    from gossamer.mobile.runtime.store import HostStanding
    from gossamer.mobile.sources.opened import Runtime
    from gossamer.mobile.sources.owner import OwnerSheet

#: The exit status of a journey that brought no document at all.
INCOMPLETE = 4

_serve = option(
    "--serve HOST=PLACE...",
    "Serve a folder (`example.org=/var/www/html`), a local server (`example.org=http://127.0.0.1:8080`), or a stored "
    "crawl or WARC files (`archive=DIR`); repeatable.",
)
_allow = option("--allow allowed NAME...", "Let crawlers use this installed processor (repeatable).")
_sheet = option("--config sheet FILE", "Read the owner's sheet from this TOML file.")
_state = option("--state DIR", "The directory of the runtime, where --state of `runtime` named one.", default="")


@click.group(invoke_without_command=True)
@_serve
@_sheet
@_allow
@option("--listen HOST:PORT", "Listen for senders here; default: 127.0.0.1:8643.", default="")
@option("--tls", "Use TLS on a loopback address too; other addresses always use it.")
@option("--state DIR", "Keep keys, crawlers and results in DIR.", default="")
@option("--weak-isolation", "Run crawlers on a machine that cannot shut them in (docs/runtime.md).")
@click.pass_context
def runtime(
    context: click.Context,
    serve: tuple[str, ...],
    sheet: str | None,
    allowed: tuple[str, ...],
    listen: str,
    tls: bool,
    state: str,
    weak_isolation: bool,
) -> int | None:
    """Run mobile crawlers beside the data (docs/mobile.md).

    Without a subcommand: take crawlers of the senders that were admitted, until Ctrl-C, run them within the owner's sheet, and keep
    their results until the senders have them (docs/runtime.md).

    \b
    gossamer runtime admit library
    gossamer runtime --serve https://example.org=/var/www/html --listen 0.0.0.0:8643

    Exit status: 0; 2 if something cannot be served, or crawlers cannot be shut in; 5 if another runtime uses the directory.
    """
    if context.invoked_subcommand is not None:
        if serve or sheet or allowed or listen or tls or state or weak_isolation:
            raise UsageError(
                f"write the options behind the subcommand: gossamer runtime {context.invoked_subcommand} ..."
            )
        return None
    from gossamer.mobile.runtime import serving
    from gossamer.mobile.runtime.keeper import ProcessLimits
    from gossamer.mobile.runtime.store import Senders

    owners = _owners(sheet, serve)
    owners = msgspec.structs.replace(owners, allow=tuple(dict.fromkeys((*owners.allow, *allowed))))
    folder = serving.state_folder(state, is_new=True)
    listening = serving.read_listening(listen or owners.listen or serving.ADDRESS, tls=tls)

    def tell_start(standing: "HostStanding") -> None:
        print(f"Listening at {standing.address}", flush=True)
        if standing.pin:
            print(f"Pin: {standing.pin}", flush=True)
        print(f"Isolation: {standing.walls}", flush=True)
        for name, place in standing.hosts.items():
            print(f"Serving {shown(name)} from {shown(place)}", flush=True)
        if not Senders(folder).names:
            tell("no sender is admitted yet; `gossamer runtime admit NAME` makes a key for one")

    serving.serve(owners, listening, folder, tell_start, limits=ProcessLimits(is_weak=weak_isolation))
    return 0


@runtime.command()
@click.argument("crawler", metavar="CRAWLER")
@_serve
@_sheet
@_allow
@option("-o --output FILE", "Write crawler and results to FILE, instead of lines to standard output.")
def run(crawler: str, serve: tuple[str, ...], sheet: str | None, allowed: tuple[str, ...], output: str | None) -> int:
    """Run the mobile CRAWLER here: a TOML file, or a file that --output wrote.

    Standard output gets a JSON line for each document that the crawler brings home, without the bytes of whole documents,
    and one for each link that leads out of its scope. The summary goes to standard error.

    \b
    gossamer runtime run clinic.toml --serve clinic.example=/var/www/html
    gossamer runtime run clinic.toml --serve archive=mycrawl -o clinic.crawler

    Exit status: 0; 2 if CRAWLER or the source cannot be used; 4 if the crawler reached no document.
    """
    from gossamer.mobile.judging import allowed_processors
    from gossamer.mobile.running import run_crawler
    from gossamer.mobile.wire import frames_of

    program, ends = _crawler(Path(crawler)), list["JourneySummary"]()
    processors = allowed_processors(allowed)
    with _opened_runtime(sheet, serve) as runtime:
        batches = _watched(run_crawler(program, runtime.pages(), processors), ends)
        if output is None:
            _print(batches)
        else:
            with opened(output) as out:
                out.buffer.writelines(frames_of(program, batches))
    return _told(ends)


@runtime.command()
@_serve
@_sheet
@option("--seed seeds URL...", "Start from URL, too (repeatable).")
@option(
    "--max-urls",
    "Look at no more URLs than this.",
    type=click.IntRange(1, 10_000_000),
    default=100_000,
    show_default=True,
)
@as_json
def check(serve: tuple[str, ...], sheet: str | None, seeds: tuple[str, ...], max_urls: int, as_json: bool) -> int:
    """Show the owner of a site what mobile crawlers could reach there.

    A crawler without any wishes starts at the home pages and at the sitemaps that robots.txt names, and follows every link.
    Directories are never listed: a file that nothing links to stays unknown. Everything that was refused is counted by its
    reason, with its first URLs.

    \b
    gossamer runtime check --serve example.org=/var/www/html
    gossamer runtime check --serve example.org=http://127.0.0.1:8080 --json

    Exit status: 0; 2 if something cannot be served; 4 if a crawler would reach no document.
    """
    from gossamer.mobile.runtime.keeper import walls_here
    from gossamer.mobile.sources.opened import reach

    with _opened_runtime(sheet, serve) as runtime:
        found = reach(runtime, seeds, max_urls)
    walls = walls_here()
    if as_json:
        isolation = {"isolation": str(walls), "is_isolated": walls.is_whole}
        say_json({**msgspec.structs.asdict(found), **isolation})
    else:
        # The answer for an owner, in plain words. URLs may be a stranger's: control characters are shown, not sent.
        print(f"Crawlers start at {', '.join(map(shown, found.seeds[:5]))}{' ...' if len(found.seeds) > 5 else ''}.")
        for site, robots in found.robots.items():
            sitemaps = f", sitemaps: {len(robots.sitemaps)}" if robots.sitemaps else ""
            print(f"robots.txt of {site}: {robots.state.replace('_', ' ')}{sitemaps}")
        print(
            f"Crawlers can reach {show_count(found.reachable, 'document')}: {show_count(found.pages, 'page')}, "
            f"{show_bytes(found.bytes)} in all."
        )
        for url in found.examples:
            print(f"    {shown(url)}")
        outcomes = ", ".join(f"{name} {number}" for name, number in found.outcomes.items())
        print(f"Answers: {outcomes or 'none'}")
        for name, kind in found.refused.items():
            print(f"Refused as {name}: {show_count(kind.count, 'request')}, since {kind.reason}.")
            for one in kind.examples:
                told = f"  ({shown(one['told'])})" if one["told"] else ""
                print(f"    {shown(one['url'])}{told}")
        if not found.refused:
            print("Nothing was refused.")
        if found.limit:
            print(f"This is not all: the limit of {found.limit} left {show_count(found.left, 'link')} unasked.")
        print(f"Isolation of crawlers: {'' if walls.is_whole else 'not whole; '}{shown(str(walls))}")
    return 0 if found.reachable else INCOMPLETE


@runtime.command()
@_state
@option("--events", "Show this many events of the log.", type=click.IntRange(0), default=10, show_default=True)
@as_json
def status(state: str, events: int, as_json: bool) -> int:
    """Show which crawlers a runtime here has, their limits, and how much they brought home.

    \b
    gossamer runtime status

    Exit status: 0; 2 if no runtime has run.
    """
    from gossamer.mobile.runtime.serving import is_held, state_folder
    from gossamer.mobile.runtime.store import last_events, read_standing

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
        state = crawler.state if runs or crawler.state != "running" else "interrupted"
        why = f" ({crawler.reason}: {shown(crawler.told)})" if crawler.reason else ""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(crawler.ended or crawler.accepted))
        print(
            f"{shown(crawler.sender)} {shown(crawler.crawler)}: {state}{why} since {when}, "
            f"{show_count(crawler.fetched, 'answer')}, {show_bytes(crawler.brought)} brought in {crawler.batches:,} "
            f"{'batch' if crawler.batches == 1 else 'batches'}, {show_bytes(crawler.kept)} kept, "
            f"{crawler.cpu:g} s of processor time"
        )
    for event in told:
        facts = ", ".join(
            f"{name} {shown(str(fact))}" for name, fact in event.items() if name not in ("at", "event") and fact
        )
        print(f"{event.get('at', '')} {shown(str(event.get('event', '')))}: {facts}")
    return 0


@runtime.command()
@click.argument("sender", metavar="SENDER")
@_state
def admit(sender: str, state: str) -> int:
    """Let SENDER send crawlers to the runtime here, and print its key.

    Only a hash of the key is kept, so copy the key now. A sender that is admitted again gets a new key, and the old one opens
    nothing any more. A runtime that is running knows the change at once.

    \b
    gossamer runtime admit library

    Exit status: 0; 2 if the name cannot be used.
    """
    from gossamer.mobile.runtime.serving import state_folder
    from gossamer.mobile.runtime.store import Senders

    print(Senders(state_folder(state, is_new=True)).admit(sender))
    tell(
        f"{sender} is admitted; give it this key, the address of the runtime, and the pin that it prints when it starts"
    )
    return 0


@runtime.command()
@click.argument("sender", metavar="SENDER")
@_state
def dismiss(sender: str, state: str) -> int:
    """Refuse crawlers and requests for results from SENDER from now on.

    \b
    gossamer runtime dismiss library

    Exit status: 0; 2 if there is no such sender.
    """
    from gossamer.mobile.runtime.serving import state_folder
    from gossamer.mobile.runtime.store import Senders

    Senders(state_folder(state)).dismiss(sender)
    return 0


@runtime.command()
@click.argument("file", metavar="FILE")
def show(file: str) -> int:
    """Show what is in a FILE that `gossamer runtime run --output` wrote: a JSON line for each document.

    The summary goes to standard error.

    Exit status: 0; 2 if the file is damaged or is none of these. It shows the content before the damage.
    """
    from gossamer.mobile.wire import BytesRefused, read_from

    ends: list[JourneySummary] = []
    try:
        with _opened(Path(file)) as stream:
            _, results = read_from(stream)
            _print(_watched(results, ends))
    except BytesRefused as refused:
        raise UsageError(f"{file}: {refused}") from None
    return _told(ends)


def _watched(batches: "Iterable[CrawlerBatch]", ends: "list[JourneySummary]") -> "Iterator[CrawlerBatch]":
    """Batches as they pass; `ends` gets the summary that the last one has."""
    for batch in batches:
        ends += [batch.summary] if batch.summary is not None else []
        yield batch


def _crawler(path: Path) -> "MobileCrawler":
    from gossamer.mobile.reading import read_crawler
    from gossamer.mobile.wire import MAGIC, BytesRefused, read_from

    with _opened(path) as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            return read_crawler(path)
        stream.seek(0)
        try:
            crawler, _ = read_from(stream)
        except BytesRefused as refused:
            raise UsageError(f"{path}: {refused}") from None
        return crawler


def _owners(sheet: str | None, serve: tuple[str, ...]) -> "OwnerSheet":
    from gossamer.mobile.sources.owner import read_sheet

    return read_sheet(None if sheet is None else Path(sheet), serve)


def _opened_runtime(sheet: str | None, serve: tuple[str, ...]) -> "Runtime":
    from gossamer.mobile.sources.opened import Runtime

    return Runtime(_owners(sheet, serve))


def _opened(path: Path) -> BinaryIO:
    with refusing(UsageError, f"{path} cannot be read"):
        return path.open("rb")


def _print(batches: "Iterable[CrawlerBatch]") -> None:
    for batch in batches:
        lines = [_line(page) for page in batch.pages]
        rows = (*batch.rows, *batch.redirects)
        lines += [dict(zip(row.__struct_fields__, msgspec.structs.astuple(row), strict=True)) for row in rows]
        lines += [{"external": url} for url in batch.external]
        for line in lines:
            say_json(line)
    sys.stdout.flush()


def _line(page: "BroughtPage") -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(page, whole=None, headers=()))
    for name, keys in (
        ("links", ("url", "relation", "anchor", "nofollow")),
        ("elements", ("selector", "text", "markup")),
    ):
        if name in plain:
            plain[name] = [dict(zip(keys, row, strict=True)) for row in plain[name]]
    if "items" in plain:
        plain["items"] = [{"kind": kind, "url": url, "value": _value(text)} for kind, url, text in plain["items"]]
    return plain


def _value(text: str) -> Any:
    """The value of an item; its text where a stranger wrote no JSON, or more brackets than are read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _told(ends: "list[JourneySummary]") -> int:
    if not ends:
        tell("the results end before their summary: the crawler was interrupted")
        return INCOMPLETE
    summary = ends[-1]
    ended = f"limit {summary.limit}" if summary.limit else summary.ended
    tell(
        f"{ended}: {summary.fetched} fetched, {summary.pages} pages, {summary.relevant} documents relevant, "
        f"{summary.irrelevant} not, {summary.queued} URLs left"
    )
    return 0 if summary.relevant + summary.irrelevant else INCOMPLETE

"""`gossamer simweb`: serve a simulated web, say what a crawl of it should find, judge one that was.

Place in the flow: the command line's door to `gossamer.simweb`. Mistakes of the user end here, as
one line and exit code 2.
"""

import contextlib
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gossamer.cli.helping import option
from gossamer.cli.saying import say_lines
from gossamer.engine.sheet import nearest, parse, show_count

if TYPE_CHECKING:
    from asyncio import Event

    from gossamer.simweb import Serving, WebSpec

SCOPES: Final = ("page", "prefix", "host", "domain", "any")

HELP: Final = """Serve a simulated web, for crawlers to be tested on.

The whole web follows from --seed: the same numbers give the same web, byte for byte. Nothing is stored, so a web of a
hundred million pages starts at once. The server listens on the loopback interface only, and knows what a crawl of it
should find.

\b
Serve 10,000 pages on 100 hosts, and log every request:
    gossamer simweb --port 8080 --log requests.log
Crawl it with Gossamer, by names:
    gossamer crawl http://www.amber0.sim/ --scope any --resolve '*.sim=127.0.0.1:8080' --allow-network 127.0.0.0/8
With any crawler that knows proxies:
    http_proxy=http://127.0.0.1:8080 wget -r -l inf -H http://www.amber0.sim/
By addresses, one for each host, without names at all:
    gossamer simweb --addresses --port 8080
    wget -r http://127.0.0.1:8080/
Then ask how the crawler did:
    gossamer simweb --audit requests.log --scope any --plot order.svg
Serve the ways in which a server can go wrong, one at each path:
    gossamer simweb --hostile --port 8080
Count what the web is like, beside what was asked for:
    gossamer simweb --describe --pages 100k
Serve stored records as the web that they came from:
    gossamer simweb --warc crawl-00000.warc.gz crawl-00001.warc.gz
List what a crawl should find:
    gossamer simweb --expected --scope host --depth 3
Slow hosts, a large web, four processes:
    gossamer simweb --pages 100m --hosts 1m --latency 80ms --bandwidth 2MB --processes 4

--set sets any other parameter of the web, e.g. --set trap_share=0 --set time_scale=86400; docs/simweb.md lists them
with their sources."""


#: Kinds of numbers with a unit -> the unit, and how one is written. Thousands of pages are written as those of bytes.
_QUANTITIES: Final = {
    "time": ("s", "80ms, 2s or 5m"),
    "size": ("bytes", "512KiB or 2MB"),
    "count": ("bytes", "10000, 100k or 1m"),
}


class Quantity(click.ParamType[float]):
    def __init__(self, kind: str) -> None:
        self.name = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number in its base unit."""
        unit, right = _QUANTITIES[self.name]
        text = str(value).replace(",", "").strip().lower()
        try:
            number = parse(f"{'0' * text.startswith('.')}{text}", unit)
        except ValueError:
            number = -1.0
        if number < 0:
            self.fail(f"{value!r} is not a {self.name}; write {right}", param, ctx)
        return number if unit == "s" else round(number)


def _settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters that --set names, converted to their types."""
    from gossamer.simweb import WebSpec

    defaults = WebSpec()
    known = {name: type(getattr(defaults, name)) for name in WebSpec.__struct_fields__}
    result: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or name not in known:
            told = nearest(name, known)
            raise click.UsageError(f"--set {pair}: write PARAMETER=VALUE, with a parameter of docs/simweb.md{told}")
        try:
            kind = known[name]
            result[name] = _TRUTHS[text.lower()] if kind is bool else kind(text)
        except (KeyError, ValueError) as error:
            raise click.UsageError(f"--set {name}: {text!r} is not {_EXPECTED[kind]}") from error
    return result


#: A refusal names what was expected in plain words.
_EXPECTED: Final[dict[type, str]] = {int: "a whole number", float: "a number", bool: "true or false"}


_TRUTHS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    """An error of the user ends as one line and exit code 2."""
    try:
        yield
    except ValueError as error:
        if not type(error).__module__.startswith("gossamer."):
            raise  # a mistake of ours
        raise click.UsageError(str(error)) from error
    except BrokenPipeError:
        raise  # the reader of the output has gone: nothing that was given is wrong
    except OSError as error:
        raise click.UsageError(f"{error.filename or 'the port'} cannot be used: {error.strerror or error}") from error
    except ModuleNotFoundError as error:
        hint = f"{shlex.quote(sys.executable)} -m pip install {error.name}"
        raise click.UsageError(f"this needs the package {error.name}; install it: {hint}") from error


_PORT = click.IntRange(0, 65_535)


@click.command("simweb", help=HELP)
@option("--seed", "Make the web from this number.", type=int, default=1, show_default=True)
@click.option("--pages", type=Quantity("count"), default=10_000, show_default=True)
@option("--hosts", "[default: pages / 100]", type=Quantity("count"), default=None)
@option("--set settings NAME=VALUE...", "Set any other parameter of the web.")
@option("--latency", "Median wait per host: 80ms.", type=Quantity("time"), default=0.0)
@option("--bandwidth", "Bytes/s a connection: 2MB.", type=Quantity("size"), default=0)
@option("--gzip compression", "Compress answers for crawlers that accept it.")
@option("--port", "Listen at this port; 0 lets the system choose.", type=_PORT, default=8080, show_default=True)
@option("--https https_port", "Also serve HTTPS on this port.", type=_PORT)
@option(
    "--ca-file", "Write the CA certificate that crawlers have to trust to this file.", type=click.Path(path_type=Path)
)
@option("--dns-port", "Also answer DNS queries on this UDP port.", type=_PORT)
@option("--addresses", "Listen on all of 127.0.0.0/8, with one host on each address.")
@click.option("--processes", type=click.IntRange(1, 64), default=1, show_default=True)
@option("--log", "Write one line for each request.", type=click.Path(path_type=Path))
@option("--hostile", "Instead of a web, serve the ways in which a server can harm a crawler.")
@click.option(
    "--warc",
    "archives",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE...",
    help="Serve stored records.",
)
@option("--timing", "With --warc: answer as slowly as when it was recorded.")
@click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar="")
@option("--audit audit_log", "Judge the crawl that this log records.", type=click.Path(path_type=Path))
@option("--describe", "Count properties of the web, and show them beside the values that were asked for.")
@option("--expected", "Print the URLs that a crawl should fetch.")
@click.option("--scope", type=click.Choice(SCOPES), default="any", show_default=True)
@option("--depth", "Expect pages at most this many clicks from a seed.", type=click.IntRange(0))
@option("--from seeds URL...", "Expect a crawl from this seed URL (repeatable).")
@option("--agent", "Judge only this user agent.", default="")
@option("--delay", "Demand at least this time between two requests to a host.", type=Quantity("time"), default=0.0)
@option("--triples", "With --audit: also judge the triples of this CSV file.", type=click.Path(path_type=Path))
@option("--json as_json", "Print the audit or the description as one line of JSON.")
@option("--plot", "Draw the audit's curves as SVG in this file.", type=click.Path(path_type=Path))
def simweb(**options: Any) -> None:
    """Serve, list or audit, as the options say."""
    if options["more"] and not options["archives"]:
        raise click.UsageError(f"{options['more'][0]}: give --warc before the files to serve")
    with _one_line():
        if options["archives"]:
            _serve_records(options)
        elif options["hostile"]:
            _serve_hostile(options["port"], options["ca_file"])
        elif options["audit_log"] is not None:
            _audit(options)
        elif options["describe"]:
            from gossamer.simweb import SimWeb
            from gossamer.simweb.describe import describe, to_json, to_text

            facts, as_json = describe(SimWeb(_spec(options))), options["as_json"]
            click.echo(to_json(facts) if as_json else to_text(facts), nl=as_json)
        elif options["expected"]:
            _expected(_spec(options), options)
        else:
            from gossamer.simweb import ServeOptions, run

            more = {"every_address": options["addresses"], "authority": options["ca_file"]}
            run(_spec(options), ServeOptions(**_of(ServeOptions, options), **more), _announce)


def _of(kind: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in kind.__struct_fields__ if name in options}


def _spec(options: dict[str, Any]) -> "WebSpec":
    from gossamer.simweb import WebSpec

    named = _of(WebSpec, options) | {
        "hosts": max(1, options["pages"] // 100) if options["hosts"] is None else options["hosts"]
    }
    return WebSpec(**(named | _settings(options["settings"])))


def _announce(serving: "Serving") -> None:
    hosts = serving.web.hosts
    count = f"{hosts.pages:,} pages on {show_count(len(hosts), 'host')}"
    click.echo(f"Serving {count} at {serving.url()}")
    click.echo(
        f"  by name    http://{hosts.name(0)}/ with --resolve '*.sim=127.0.0.1:{serving.port}' --allow-network 127.0.0.0/8"
    )
    click.echo(f"  by proxy   http_proxy=http://127.0.0.1:{serving.port}")
    if serving.https_port is not None:
        click.echo(f"  by HTTPS   --resolve '*.sim=127.0.0.1:{serving.https_port}' --allow-network 127.0.0.0/8")
    if serving.dns_port is not None:
        click.echo(f"  by DNS     127.0.0.1:{serving.dns_port} (UDP)")
    click.echo("Stop with Ctrl-C.")


def _serve_records(options: dict[str, Any]) -> None:
    import asyncio

    from gossamer.simweb.replay import Replay, ReplayIndex

    async def serve(index: ReplayIndex) -> None:
        stop = _interrupts()
        async with Replay(index, port=options["port"], timing=options["timing"]) as replay:
            ca_file = options["ca_file"]
            if ca_file is not None:
                ca_file.write_bytes(replay.certificate)
            click.echo(f"Serving {len(index):,} URLs of {len(index.files):,} files at 127.0.0.1:{replay.port}")
            if index.unreadable:
                click.echo(f"{index.unreadable:,} records have no URL that can be asked for")
            trust = f" --ca-file {ca_file}" if ca_file is not None else ""
            where = f"--resolve '*=127.0.0.1:{replay.port}' --allow-network 127.0.0.0/8{trust}"
            for url in index.first_urls(1):
                say_lines((f"  gossamer crawl {url} --scope any {where}",))
            click.echo("Stop with Ctrl-C.")
            await stop.wait()

    with ReplayIndex([*options["archives"], *options["more"]]) as index:
        asyncio.run(serve(index))


def _serve_hostile(port: int, ca_file: Path | None) -> None:
    """Serve the hostile cases, and say where each is and how a fetch of it has to end."""
    import asyncio

    from gossamer.simweb.hostile import HostileWeb

    async def serve() -> None:
        stop = _interrupts()
        async with HostileWeb(port=port) as web:
            if ca_file is not None:
                ca_file.write_bytes(web.certificate)
            for case in web.cases.values():
                click.echo(f"{case.outcome:<16} {web.url(case)}")
            click.echo(f"{'ok':<16} {web.healthy}")
            say_lines(
                (f"All of them: gossamer crawl http://hostile.sim/ --resolve '*.sim=127.0.0.1:{web.port}' --depth 12",)
            )
            click.echo("Stop with Ctrl-C.")
            await stop.wait()

    asyncio.run(serve())


def _interrupts() -> "Event":
    """The event that SIGINT and SIGTERM set. It is made before anything is told, for then a program may end this one."""
    import asyncio

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _expected(spec: "WebSpec", options: dict[str, Any]) -> None:
    from gossamer.simweb import SimWeb
    from gossamer.simweb.graph import WebGraph, expected_pages

    graph = WebGraph(SimWeb(spec))
    agent = options["agent"] or "Gossamer"
    found = expected_pages(graph, list(options["seeds"]) or None, options["scope"], options["depth"], agent)
    for page in found.pages:
        click.echo(graph.url(int(page)))


def _audit(options: dict[str, Any]) -> None:
    from gossamer.simweb.audit import AuditOptions, audit, to_json, to_svg, to_text

    meant = AuditOptions(**{**_of(AuditOptions, options), "seeds": list(options["seeds"]) or None})
    verdict = audit(options["audit_log"], meant)
    if options["plot"] is not None:
        options["plot"].write_text(to_svg(verdict))
    click.echo(to_json(verdict) if options["as_json"] else to_text(verdict), nl=options["as_json"])

"""Crawls over the loopback network, and what the auditor says of them."""

import asyncio
import json
import socket
import ssl
import struct
import xml.dom.minidom
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from gossamer.cli.main import commands
from gossamer.simweb import ServeOptions, Serving, SimWeb, WebSpec, serve
from gossamer.simweb.audit import Audit, AuditOptions, audit, to_json, to_svg, to_text
from gossamer.simweb.graph import WebGraph, expected_pages
from gossamer.simweb.hosts import ROBOTS
from gossamer.simweb.log import LogError, read_entries
from gossamer.testing.clock import HUNG_AFTER

SPEC = WebSpec(seed=4, pages=600, hosts=25, size_median=2000)


async def talk(port: int, *pieces: bytes, tls: ssl.SSLContext | None = None, name: str | None = None) -> bytes:
    """Send bytes piece by piece on one connection and return all that comes back until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        for _ in range(5):
            await asyncio.sleep(0)  # turns of the loop, in which the server reads this piece alone
    answer = await reader.read()
    writer.close()
    return answer


def request(target: str, host: str, *fields: str, method: str = "GET", close: bool = True) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "User-Agent: Gossamer/1", *fields]
    if close:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode()


def serving(tmp_path: Path, talk_to: Callable[[Serving], Awaitable[None]], spec: WebSpec = SPEC, **more: int) -> Path:
    """Serve a web while `talk_to` runs; return the log."""
    log = tmp_path / "requests.log"

    async def main() -> None:
        async with serve(SimWeb(spec), ServeOptions(log=log, **more)) as ready:
            await talk_to(ready)

    asyncio.run(main())
    return log


def crawl_as(tmp_path: Path, *, obey: bool, retry: bool, twice: bool = False) -> Audit:
    """Ask for all pages of the web in breadth-first order, the way a crawler of some manners does."""
    graph = WebGraph(SimWeb(SPEC))
    pages = expected_pages(graph, agent="Gossamer/1", obey_robots=obey).requests

    async def crawl(ready: Serving) -> None:
        asked = set()
        for page in [int(page) for page in pages] * (2 if twice else 1):
            name, _, path = graph.url(page)[7:].partition("/")
            if obey and name not in asked:
                asked.add(name)
                await talk(ready.port, request("/robots.txt", name))
            answer = await talk(ready.port, request(f"/{path}", name))
            if retry and b" 503 " in answer[:20]:
                await talk(ready.port, request(f"/{path}", name))

    return audit(serving(tmp_path, crawl))


def test_a_perfect_crawl_is_found_perfect(tmp_path: Path) -> None:
    verdict = crawl_as(tmp_path, obey=True, retry=True)
    assert (verdict.coverage.missed, verdict.coverage.extra, verdict.repeats.requests) == (0, 0, 0)
    assert verdict.coverage.expected > 300
    assert (verdict.robots.breaches, verdict.robots.never_asked, verdict.robots.asked_late) == (0, 0, 0)
    assert verdict.host.most_in_flight == 1
    assert verdict.order.crawl_area == pytest.approx(verdict.order.breadth_first_area, rel=0.01)
    assert verdict.order.crawl_area <= 1


def test_a_crawl_without_manners_is_found_out(tmp_path: Path) -> None:
    verdict = crawl_as(tmp_path, obey=False, retry=False, twice=True)
    assert verdict.robots.breaches > 0
    assert verdict.robots.never_asked == verdict.robots.hosts
    assert verdict.repeats.requests > 300
    assert verdict.coverage.extra > 0


def test_a_crawl_that_never_retries_misses_exactly_the_flaky_pages(tmp_path: Path) -> None:
    verdict = crawl_as(tmp_path, obey=True, retry=False)
    assert verdict.coverage.missed == verdict.coverage.missed_flaky > 0


def test_simultaneous_requests_to_one_host_are_counted(tmp_path: Path) -> None:
    async def rush(ready: Serving) -> None:
        asks = (talk(ready.port, request(f"/s0/{page}.html", "www.amber0.sim")) for page in range(1, 6))
        await asyncio.gather(*asks)

    spec = WebSpec(seed=4, pages=600, hosts=25, latency=0.05)
    verdict = audit(serving(tmp_path, rush, spec))
    assert verdict.host.most_in_flight == 5
    assert verdict.host.overlapping == 4


@pytest.mark.parametrize("size", [3, 7])
def test_requests_sent_together_are_answered_in_order(tmp_path: Path, size: int) -> None:
    name = "www.amber0.sim"
    pages = [f"/s0/{number}.html" for number in (3, 1, 2)]
    together = b"".join(request(page, name, close=page == pages[-1]) for page in pages)

    async def main(ready: Serving) -> None:
        # Cut at every place where a header could be torn apart by the network.
        answer = await talk(ready.port, *(together[k : k + size] for k in range(0, len(together), size)))
        places = [answer.find(f" zq{number}</title>".encode()) for number in (3, 1, 2)]
        assert -1 not in places
        assert places == sorted(places)

    log = serving(tmp_path, main)
    assert [entry.target for entry in read_entries(log)] == pages


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/2.0\r\n\r\n", b"505"),
        (b"POST / HTTP/1.1\r\nHost: www.amber0.sim\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET / HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n", b"421"),
        (b"GET /" + b"a" * 70_000, b"431"),
        (b"GET http://www.amber0.sim/ HTTP/1.0\r\n\r\n", b"200"),
        (b"HEAD / HTTP/1.0\r\nHost: www.amber0.sim\r\n\r\n", b"200"),
    ],
)
def test_odd_requests_get_an_answer_and_an_end(tmp_path: Path, sent: bytes, status: bytes) -> None:
    async def main(ready: Serving) -> None:
        answer = await talk(ready.port, sent)
        assert answer.split(b" ", 2)[1] == status
        if sent.startswith(b"HEAD"):
            assert answer.endswith(b"\r\n\r\n")

    serving(tmp_path, main)


def test_https_is_trusted_by_who_trusts_the_web_authority(tmp_path: Path) -> None:
    async def main(ready: Serving) -> None:
        assert ready.certificate is not None
        assert ready.https_port is not None
        trusting = ssl.create_default_context(cadata=ready.certificate.decode())
        for name in ("www.amber0.sim", "www.birch1.sim"):
            answer = await talk(ready.https_port, request("/", name), tls=trusting, name=name)
            assert answer.startswith(b"HTTP/1.1 200")
            assert b'href="https://' in answer

    serving(tmp_path, main, https_port=0)


def dns_query(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


@pytest.mark.parametrize(
    ("name", "kind", "code", "answers"),
    [("www.amber0.sim", 1, 0, 1), ("WWW.AMBER0.SIM", 1, 0, 1), ("www.amber0.sim", 28, 0, 0), ("nosuch.sim", 1, 3, 0)],
)
def test_the_name_server_knows_the_hosts_of_the_web(
    tmp_path: Path, name: str, kind: int, code: int, answers: int
) -> None:
    def ask(port: int) -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(HUNG_AFTER)
            client.sendto(dns_query(name, kind), ("127.0.0.1", port))
            return client.recv(512)

    async def main(ready: Serving) -> None:
        assert ready.dns_port is not None
        reply = await asyncio.to_thread(ask, ready.dns_port)
        number, flags, _, count, _, _ = struct.unpack_from(">HHHHHH", reply)
        assert (number, flags & 15, count) == (7, code, answers)
        if answers:
            assert reply.endswith(socket.inet_aton("127.0.0.1"))

    serving(tmp_path, main, dns_port=0)


def test_what_a_request_brings_cannot_break_the_log(tmp_path: Path) -> None:
    async def main(ready: Serving) -> None:
        odd = request("/a%0Ab\tc", "www.amber0.sim", "User-Agent: x\ty\x01z")
        await talk(ready.port, odd)
        await talk(ready.port, request("/", "www.amber0.sim"))

    entries = list(read_entries(serving(tmp_path, main)))
    assert len(entries) == 2
    assert entries[0].agent == "x%09y%01z"


def test_a_torn_last_line_is_left_out_and_a_used_log_is_not_overwritten(tmp_path: Path) -> None:
    async def main(ready: Serving) -> None:
        await talk(ready.port, request("/", "www.amber0.sim"))

    log = serving(tmp_path, main)
    with log.open("a") as file:
        file.write("12\t34\t5")
    assert len(list(read_entries(log))) == 1
    with pytest.raises(LogError, match="not empty"):
        serving(tmp_path, main)


def test_an_audit_reads_as_text_json_and_picture(tmp_path: Path) -> None:
    async def main(ready: Serving) -> None:
        await talk(ready.port, request("/robots.txt", "www.amber0.sim"))
        await talk(ready.port, request("/", "www.amber0.sim"))

    verdict = audit(serving(tmp_path, main), AuditOptions(scope="page"))
    assert json.loads(to_json(verdict))["coverage"]["found"] == 1
    assert "1 of 1 expected pages (100.00%)" in to_text(verdict)
    xml.dom.minidom.parseString(to_svg(verdict))


def test_the_command_lists_the_pages_to_expect() -> None:
    done = CliRunner().invoke(
        commands, ["simweb", "--pages", "300", "--hosts", "5", "--expected", "--scope", "host", "--depth", "1"]
    )
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0] == "http://www.amber0.sim/"
    assert len(lines) == len(set(lines)) > 5


@pytest.mark.parametrize(
    "arguments",
    [
        ["--pages", "lots"],
        ["--pages", "10", "--hosts", "20"],
        ["--set", "trap_sahre=1"],
        ["--audit", "/nonexistent/log"],
        ["--audit", __file__],
        ["--expected", "--from", "http://www.example.org/"],
        ["--latency", "5 parsecs"],
    ],
)
def test_a_mistake_ends_in_one_line_and_exit_code_2(arguments: list[str]) -> None:
    done = CliRunner().invoke(commands, ["simweb", *arguments])
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert len([line for line in done.output.splitlines() if line.startswith("Error:")]) == 1


def test_robots_rules_reach_the_wire(tmp_path: Path) -> None:
    web = SimWeb(SPEC)
    hosts = {web.hosts.host(rank).robots: web.hosts.host(rank) for rank in range(len(web.hosts))}

    async def main(ready: Serving) -> None:
        for kind, host in hosts.items():
            answer = await talk(ready.port, request("/robots.txt", host.name))
            assert int(answer.split(b" ", 2)[1]) == ROBOTS[kind].status

    serving(tmp_path, main)
    assert len(hosts) > 4

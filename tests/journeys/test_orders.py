"""A processor blocks a host while the crawl runs, where the wiring takes orders."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.facts import known_of
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.documents.document import Document
from gossamer.engine.sheet import NoSettings, build
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ProviderPlan, Wiring, to_toml
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.visit import Block

#: How long a processor wants a host to be left alone; long beside what a request takes here.
SLOW = 1.5

#: A program that crawls with a processor of its own, which orders a delay for the host that a page names in its title.
PROGRAM = """
import sys
from pathlib import Path
import msgspec
from gossamer.crawls.catalog import catalog
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import NoSettings, build
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import read
from gossamer.values.visit import Delay

class Slowing(Provider[NoSettings]):
    def process(self, document):
        if document.title:
            yield Delay(document.title, float(sys.argv[3]))

known = catalog()
known.add("opt-out", Slowing)
seeds, options = msgspec.json.decode(sys.argv[1])
run(Crawl(seeds, build(all_options(), options), wiring=read(Path(sys.argv[2])) if seeds else None, catalog=known))
"""


class OptOut(Provider[NoSettings]):
    """Blocks the host that a page names in its title."""

    def process(self, document: Document) -> Iterable[Block]:
        """One for each page with a title."""
        if document.title:
            yield Block(document.title)


def wiring(*, takes_orders: bool) -> Wiring:
    plain = shipped("default")
    process, commit = plain.components["process"], plain.components["commit"]
    components = {**plain.components, "process": _also(process, "processors", "text/html", "opt-out")}
    providers = {**plain.providers, "opt-out": ProviderPlan("opt-out")}
    if takes_orders:
        components["commit"] = _also(commit, "keepers", "visits", "orders")
        roles = {"ledger": "ledger", "politeness": "politeness"}
        providers["orders"] = ProviderPlan("processor-orders", roles)
    return msgspec.structs.replace(plain, components=components, providers=providers)


def _also(plan, role: str, key: str, name: str):  # type: ignore[no-untyped-def]
    bound = plan.providers[role]
    names = [bound[key]] if isinstance(bound[key], str) else list(bound[key])
    return msgspec.structs.replace(plan, providers={**plan.providers, role: {**bound, key: [*names, name]}})


@pytest.mark.parametrize("takes_orders", [True, False])
def test_a_host_that_a_processor_blocks_is_asked_no_more(tmp_path: Path, takes_orders: bool) -> None:
    links = "".join(f'<a href="http://b.test/{n}">x</a><a href="http://c.test/{n}">x</a>' for n in range(5))
    pages = {"http://a.test/": f"<title>b.test</title>{links}"}
    pages |= {f"http://{host}/{n}": "here" for host in ("b.test", "c.test") for n in range(5)}
    known = catalog()
    known.add("opt-out", OptOut)
    with FakeWeb(pages) as web:
        given = {"output": str(tmp_path / "c"), "delay": 0, "scope": "any", "resolve": [web.resolve]}
        options = build(all_options(), {**given, "allow_network": ["127.0.0.0/8"]})
        job = Crawl(["http://a.test/"], options, wiring=wiring(takes_orders=takes_orders), catalog=known, tables=False)
        summary = run(job)
        asked = Counter(request.host.partition(":")[0] for request in web.requests)
    assert summary.state == "finished"
    if takes_orders:
        assert (asked["b.test"], asked["c.test"]) == (0, 5)
        assert summary.outcomes == {"ok": 6, "blocked": 5}
    else:
        assert (asked["b.test"], asked["c.test"]) == (5, 5)
    directory = tmp_path / "c"
    blocked = ["b.test"] if takes_orders else []
    assert standing_at_rest(directory).blocked == blocked
    ledger = RocksLedger(LedgerSheet(directory=str(directory), existing=True))
    ledger.open()
    told = {name: count for name, count in ledger.counters().items() if "order" in name}
    known_by = [known_of(ledger, f"http://{host}/1").blocked_by for host in ("b.test", "c.test")]
    ledger.close()
    assert known_by == ["".join(blocked), ""]
    assert told == ({"ordered:block": 1} if takes_orders else {"orders_refused": 1})


@pytest.mark.long
def test_a_delay_that_a_processor_ordered_holds_after_a_kill(tmp_path: Path) -> None:
    arrivals: list[float] = []

    def slow(request: FakeRequest) -> str:
        arrivals.append(time.monotonic())
        return "here"

    links = "".join(f'<a href="http://slow.test/{n}">x</a>' for n in range(4))
    pages: dict[str, str | FakePage] = {
        "http://a.test/": f"<title>slow.test</title>{links}",
        "/robots.txt": FakePage("", status=404),
    }
    plan = tmp_path / "orders.toml"
    plan.write_text(to_toml(wiring(takes_orders=True)), encoding="utf-8")
    with FakeWeb(pages, otherwise=slow) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "domain_delay": 0, "ip_delay": 0, "scope": "any"}
        options |= {"resolve": [web.resolve], "allow_network": ["127.0.0.0/8"]}

        def program(seeds: list[str], **more: object) -> "subprocess.Popen[bytes]":
            given = msgspec.json.encode((seeds, {**options, **more})).decode()
            return subprocess.Popen([sys.executable, "-P", "-c", PROGRAM, given, str(plan), str(SLOW)])

        first = program(["http://a.test/"])
        while len(arrivals) < 2:
            web.wait_for(len(web.requests) + 1)
        first.kill()
        first.wait()
        before = len(arrivals)
        assert program([], resume=True).wait() == 0
    assert before < 4, "killed at another moment"
    assert len(arrivals) >= 4
    gaps = [later - earlier for earlier, later in pairwise(arrivals)]
    assert min(gaps) > SLOW * 0.9, gaps

"""A processor blocks a host while the crawl runs, where the wiring takes orders."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from gossamer.assembly.catalog import catalog
from gossamer.assembly.compiling import shipped
from gossamer.assembly.control.knowing import known_of
from gossamer.assembly.control.standing import standing_at_rest
from gossamer.assembly.crawl import Crawl, run
from gossamer.assembly.options import CrawlOptions
from gossamer.flow.sheet import NoSettings, build
from gossamer.flow.unit import Provider
from gossamer.flow.wiring import ProviderPlan, Wiring
from gossamer.model.orders import Block
from gossamer.reading.document import Document
from gossamer.stores.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.fakeweb import FakeWeb


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
        options = build(CrawlOptions, {**given, "allow_network": ["127.0.0.0/8"]})
        job = Crawl(["http://a.test/"], options, wiring=wiring(takes_orders=takes_orders), catalog=known)
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

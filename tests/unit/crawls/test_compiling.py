"""Options to wiring: what each option changes, and that a wiring that lacks a unit says so."""

from typing import Any

import msgspec
import pytest

from gossamer.crawls.catalog import COMPONENTS, PROVIDERS
from gossamer.crawls.compiling import RULES, SETTINGS, compile_wiring, shipped
from gossamer.crawls.options import HEADINGS, CrawlOptions, all_options, settings_of_options
from gossamer.engine.errors import FlowError
from gossamer.engine.sheet import build
from gossamer.engine.subjects import found_at
from gossamer.engine.wiring import Wiring
from gossamer.values.errors import UsageError
from gossamer.values.url_normalization import chosen

SEEDS = ["http://a.test/"]

#: A value for each option that changes the wiring, and what it changes of it: settings of units, or the use of one.
CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "concurrency": (7, {"frontier.concurrency": 7}),
    "normalize": (["no-sessions"], {"links.normalise": list(chosen(["no-sessions"]))}),
    "ads": ("keep", {"noise.drop": False}),
    "filter": (["follow: depth <= 3"], {"expressions.follow": ("depth <= 3",)}),
    "until": ("title = x", {"expressions.until": "title = x"}),
    "traps": ("report", {"traps.cut": False}),
    "no_warc": (True, {"archive": "no-archive"}),
    "archive": (["/mnt/b"], {"archive.disks": ["/mnt/b"]}),
    "strategy": ("depth", {"traversal": "depth"}),
    "robots": ("ignore", {"robots": "ignore-robots"}),
    "robots_cache": (
        "shared",
        {"robots": "shared-robots", "robots.reads": True, "robots.view": "", "robots-answers": "robots-answers"},
    ),
    "hosts": ({"a.test": {"delay": "5s"}}, {"politeness.delays": {"a.test": 5.0}}),
    "agents": (3, {"frontier.max_agents": 3}),
    "retries": (2, {"politeness.retries": [10.0, 600.0]}),
    "proxy": ("http://a.test:1", {"http.proxy": ["http://a.test:1"], "frontier.proxied": True}),
    "header": (["X-A: 1"], {"http.header": ("X-A: 1",)}),
    "auth": ("me:secret", {}),
    "page_requisites": (True, {"html.requisites": True, "css.requisites": True, "scope.requisites": True}),
    "mirror": ("site", {"html.requisites": True, "css.requisites": True, "scope.requisites": True}),
    "language": (["de"], {"process.languages": ["de"]}),
    "follow_nofollow": (True, {"process.obey_nofollow": False, "nofollow.follow": True}),
    "analysis": ("full", {"process.details": "full", "html.anchors": True, "near-duplicates": "near-duplicates"}),
    "text": ("all", {"process.text": "all"}),
    "near_duplicates": ("skip", {"process.details": "full", "near-duplicates.skip": True}),
    "user_agent": ("Mine/1", {"http.user_agent": "Mine/1", "robots.agent": "Mine", "dns.only_loopback": False}),
    "contact": ("me@b.test", {"archive.contact": "me@b.test", "dns.only_loopback": False}),
}

#: Options that are no matter of the wiring: where the crawl is kept, and how a run begins.
ELSEWHERE = {"output", "overwrite", "resume", "accept_loss", "release", "i_own_these_hosts", "rdf"}
ELSEWHERE |= {
    "cookie_file",
    "header_for",
    "items",
    "item_columns",
    "item_key",
    "item_formulas",
    "triple_store",
    "sinks",
    "index",
}
#: They do so together: tests/journeys/test_exchange_files.py.
ELSEWHERE |= {"exchange", "agent", "exchange_key"}
#: They are matters of masters: tests/unit/agents/test_masters.py.
ELSEWHERE |= {"designation", "masters", "policy", "place", "agent_place"}
#: They say where agents run: tests/conformance/test_clusters.py.
ELSEWHERE |= {"cluster", "listen", "secret_file", "agent_wheel"}
#: It divides what the others have filled in: test_crawlers.py, tests/journeys/test_leases.py.
ELSEWHERE |= {"crawlers"}


def compiled(seeds: list[str] = SEEDS, **options: Any) -> Wiring:
    return compile_wiring(seeds, build(all_options(), options))


def told(wiring: Wiring, what: str) -> Any:
    unit, _, setting = what.partition(".")
    plan = wiring.components.get(unit) or wiring.providers[unit]
    return msgspec.to_builtins(plan.settings.get(setting)) if setting else plan.use


def test_every_option_of_the_core_stands_under_one_heading_of_the_help() -> None:
    listed = [name for one in HEADINGS.values() for name in f"{one.usual} {one.others}".split()]
    assert len(listed) == len(set(listed))
    assert set(CrawlOptions.__struct_fields__) <= set(listed)


def test_every_option_is_a_matter_of_the_wiring_or_of_the_run() -> None:
    assert set(CrawlOptions.__struct_fields__) == set(settings_of_options()) | set(CHANGES) | ELSEWHERE
    assert set(RULES) | set(SETTINGS) <= set(CHANGES)


@pytest.mark.parametrize("option", CHANGES)
def test_an_option_changes_what_it_says_and_only_that(option: str) -> None:
    given, changes = CHANGES[option]
    wiring = compiled(**{option: given})
    assert wiring != compiled()
    assert {what: told(wiring, what) for what in changes} == changes


@pytest.mark.parametrize("option", settings_of_options())
def test_an_option_that_is_left_alone_sets_nothing(option: str) -> None:
    default = getattr(CrawlOptions(), option)
    for unit, setting in settings_of_options()[option]:
        plan = compiled().components.get(unit) or compiled().providers[unit]
        shipped_plan = shipped("default").components.get(unit) or shipped("default").providers[unit]
        assert plan.settings.get(setting) == shipped_plan.settings.get(setting), default


@pytest.mark.parametrize("option", settings_of_options())
def test_the_default_of_an_option_is_the_value_that_holds_without_it(option: str) -> None:
    default = getattr(CrawlOptions(), option)
    unit, setting = settings_of_options()[option][0]
    plan = (shipped("default").components | shipped("default").providers)[unit]
    held = plan.settings.get(setting, getattr(found_at((COMPONENTS | PROVIDERS)[plan.use]).sheet_type(), setting))
    assert default in (held, None)


def test_every_request_in_flight_has_a_worker() -> None:
    assert compiled(concurrency=7).components["fetch"].workers == 7


def test_a_random_walk_may_come_again_and_keeps_no_first_documents() -> None:
    wiring = compiled(strategy="random-walk")
    assert wiring.components["commit"].settings["again"] and wiring.components["url-seen"].settings["again"]
    assert "content-seen" not in wiring.components
    feeds = {end for plan in wiring.components.values() for end in plan.ports.values()}
    assert feeds <= set(wiring.connectors)


def test_a_wiring_that_lacks_a_unit_names_the_option_that_needs_it() -> None:
    bare = msgspec.structs.replace(shipped("default"), providers={}, source="mine.toml")
    for option, text in [
        ("no_warc", "--no-warc replaces unit 'archive'"),
        ("retries", "--retries sets unit 'politeness'"),
    ]:
        with pytest.raises(FlowError, match=text):
            compile_wiring([], build(all_options(), {option: CHANGES[option][0]}), bare)


def test_a_topic_says_how_far_links_lead_through_pages_that_are_irrelevant() -> None:
    focus = compiled(topic=["whales"], irrelevant_hops=3).providers["focus"]
    assert focus.settings == {"tunnel": 3}


def test_a_wiring_without_a_contact_stays_on_this_machine() -> None:
    assert told(compiled(), "dns.only_loopback") is None
    assert told(compiled(contact="me@b.test", robots="ignore"), "dns.only_loopback") is None
    own = compiled(contact="me@b.test", robots="ignore", i_own_these_hosts=True)
    assert told(own, "dns.only_loopback") is False


def test_robots_are_shared_by_crawls_that_see_the_same_web() -> None:
    def view(**options: Any) -> Any:
        return told(compiled(robots_cache="shared", **options), "robots.view")

    staging = view(resolve=["*.a.test=127.0.0.1:8000"])
    assert staging and staging != view(resolve=["*.a.test=127.0.0.1:8001"])
    assert view(auth=["me:secret"]) == view(auth=["you:other"]) != view(), "it tells no secret"
    assert told(compiled(robots_cache="refresh"), "robots.reads") is False
    assert told(compiled(robots_cache="shared", sitemaps=True), "robots.reads") is False, "the rules lack the sitemaps"
    with pytest.raises(UsageError, match="leave one of them out"):
        compiled(robots="ignore", robots_cache="shared")

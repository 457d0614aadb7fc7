"""A wiring that an older version wrote into a crawl directory is one that this version runs."""

import msgspec
import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring, shipped
from gossamer.crawls.old_wirings import completed
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.engine.errors import WiringError
from gossamer.engine.planning import plan
from gossamer.engine.sheet import build
from gossamer.engine.wiring import ComponentPlan, ProviderPlan, Wiring


def changed(table: str, name: str, **fields: object) -> Wiring:
    """The shipped wiring with other fields of one unit."""
    wiring = shipped("default")
    units = getattr(wiring, table)
    unit = msgspec.structs.replace(units[name], **fields)
    return msgspec.structs.replace(wiring, **{table: {**units, name: unit}})


def without(roles: dict[str, object], *gone: str) -> dict[str, object]:
    return {role: bound for role, bound in roles.items() if role not in gone}


@pytest.mark.parametrize(
    "options",
    [
        CrawlOptions(),
        CrawlOptions(rdf=True, analysis="full", near_duplicates="skip", page_requisites=True),
        build(all_options(), {"recrawl": "every=1h", "strategy": "opic", "robots_cache": "shared"}),
        build(all_options(), {"strategy": "random-walk", "topic": ["whales"], "no_warc": True}),
    ],
    ids=lambda options: options.strategy,
)
def test_a_wiring_of_today_stays_as_it_is(options: CrawlOptions) -> None:
    wiring = compile_wiring([], options)
    assert completed(wiring) == wiring


def test_providers_in_roles_of_the_commit_that_are_gone_keep_and_watch_visits_as_others_do() -> None:
    new = shipped("default").components["commit"]
    roles = {**without(dict(new.providers), "keepers", "watchers"), "log": "log", "traps": "traps"}
    mended = completed(changed("components", "commit", providers=roles))
    assert mended.components["commit"].providers["keepers"] == {"visits": ["log"]}
    assert mended.components["commit"].providers["watchers"] == {"visits": ["traps", "template"]}


def test_a_role_that_a_unit_needs_since_is_bound_as_today_with_the_providers_that_it_needs() -> None:
    new = shipped("default")
    commit = new.components["commit"]
    roles = {**without(dict(commit.providers), "goals"), "watchers": {"visits": ["traps", "aliases"]}}
    old = msgspec.structs.replace(
        new,
        components={**new.components, "commit": msgspec.structs.replace(commit, providers=roles)},
        providers={
            **without(new.providers, "template"),
            "http": ProviderPlan("http", {"resolver": "dns"}),
            "traps": ProviderPlan("traps"),
        },
    )
    mended = completed(old)
    plan(mended, catalog())
    assert mended.components["commit"].providers == commit.providers
    assert mended.providers == new.providers


def test_a_limit_of_depth_that_three_units_had_is_one_of_the_ledger() -> None:
    new = shipped("default")
    commit, frontier = (
        msgspec.structs.replace(new.components[name], settings={"depth": 3}) for name in ("commit", "frontier")
    )
    old = msgspec.structs.replace(
        new,
        components={**new.components, "commit": commit, "frontier": frontier},
        providers={**new.providers, "ledger": ProviderPlan("ledger", settings={"depths": True})},
    )
    mended = completed(old)
    assert mended.providers["ledger"].settings == {"depth": 3}
    assert mended.components["commit"].settings == mended.components["frontier"].settings == {}


def test_settings_of_a_provider_that_is_gone_are_those_of_its_heir() -> None:
    new = compile_wiring([], build(all_options(), {"recrawl": "adaptive"}))
    bounds = {"a.test": 60.0}
    schedule = new.providers["revisits"]
    old = msgspec.structs.replace(
        new,
        components={**new.components, "changes": ComponentPlan("changes", new.components["changes"].ports)},
        providers={
            **without(new.providers, "page-texts"),
            "bounds": ProviderPlan("interval-rules", settings={"rules": ["1h..: true"], "min_by_host": bounds}),
            "revisits": msgspec.structs.replace(schedule, providers={**schedule.providers, "rules": "bounds"}),
        },
    )
    mended = completed(old)
    plan(mended, catalog())
    kept = mended.providers["revisits"].settings
    assert (kept["intervals"], kept["min_by_host"]) == (["1h..: true"], bounds)
    assert mended.components["changes"].providers["texts"] == "page-texts"


def test_a_crawl_that_was_to_keep_trying_lingers_for_ever() -> None:
    mended = completed(changed("components", "frontier", settings={"keep_trying": True, "max_pages": 3}))
    assert mended.components["frontier"].settings == {"linger": "forever", "max_pages": 3}


def test_crawlers_are_told_which_hosts_are_blocked_where_an_older_wiring_sends_some() -> None:
    new = shipped("default")
    old = msgspec.structs.replace(
        new, components={**new.components, "crawlers": ComponentPlan("crawlers", providers={"ledger": "ledger"})}
    )
    mended = completed(old).components["crawlers"]
    assert mended.providers["politeness"] == new.components["frontier"].providers["politeness"]


def test_an_edit_that_names_what_is_not_there_is_still_refused() -> None:
    wiring = shipped("default")
    edited = msgspec.structs.replace(wiring, providers=without(wiring.providers, "noise"))
    with pytest.raises(WiringError, match=r"there is no provider 'noise'"):
        plan(completed(edited), catalog())


def test_names_that_no_host_can_have_close_none_and_keep_no_crawl_from_going_on() -> None:
    blocked = ["a..b", "x" * 300, "*.shop.test", "a.test"]
    mended = completed(changed("providers", "politeness", settings={"blocked": blocked}))
    assert mended.providers["politeness"].settings == {"blocked": ["*.shop.test", "a.test"]}
    plan(mended, catalog())

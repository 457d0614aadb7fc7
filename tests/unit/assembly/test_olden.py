"""A wiring that an older version wrote into a crawl directory is one that this version runs."""

import msgspec

from gossamer.assembly.catalog import catalog
from gossamer.assembly.compiling import shipped
from gossamer.assembly.olden import with_roles
from gossamer.flow.planning import plan
from gossamer.flow.wiring import ComponentPlan, ProviderPlan, Wiring


def older() -> Wiring:
    """The shipped wiring with the row log in a role of its own, and a limit of depth at url-seen."""
    wiring = shipped("default")
    commit, seen = wiring.components["commit"], wiring.components["url-seen"]
    roles = {role: bound for role, bound in commit.providers.items() if role != "keepers"}
    changed = {
        "commit": msgspec.structs.replace(commit, providers={**roles, "log": "log"}),
        "url-seen": msgspec.structs.replace(seen, settings={"depth": 2, "again": False}),
    }
    return msgspec.structs.replace(wiring, components={**wiring.components, **changed})


def test_a_row_log_in_a_role_of_its_own_becomes_a_keeper_and_no_other_unit_is_touched() -> None:
    mended, new = with_roles(older()), shipped("default")
    assert mended.components["commit"] == new.components["commit"]
    assert mended.components["url-seen"].settings == {"again": False}
    assert {name: one for name, one in mended.components.items() if name != "url-seen"} == {
        name: one for name, one in new.components.items() if name != "url-seen"
    }
    plan(mended, catalog())


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
    mended = with_roles(old)
    assert mended.providers["ledger"].settings == {"depth": 3}
    assert mended.components["commit"].settings == mended.components["frontier"].settings == {}
    plan(mended, catalog())


def test_crawlers_are_told_which_hosts_are_blocked_where_an_older_wiring_sends_some() -> None:
    new = shipped("default")
    roles = {"ledger": "ledger"}
    old = msgspec.structs.replace(
        new, components={**new.components, "crawlers": ComponentPlan("crawlers", providers=roles)}
    )
    mended = with_roles(old).components["crawlers"]
    assert mended.providers == {**roles, "politeness": new.components["frontier"].providers["politeness"]}


def test_a_wiring_of_today_stays_as_it_is() -> None:
    assert with_roles(shipped("default")) == shipped("default")

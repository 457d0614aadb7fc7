"""A wiring that an older version wrote into a crawl directory is one that this version runs."""

import msgspec

from gossamer.assembly.catalog import catalog
from gossamer.assembly.compiling import shipped
from gossamer.assembly.olden import with_roles
from gossamer.flow.planning import plan
from gossamer.flow.wiring import ProviderPlan, Wiring


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


def test_a_setting_that_never_had_an_effect_is_left_out() -> None:
    given = ProviderPlan(use="weighted", settings={"in_degree": 0.5, "site": 1.0})
    old = msgspec.structs.replace(shipped("default"), providers={**shipped("default").providers, "prioritizer": given})
    assert with_roles(old).providers["prioritizer"].settings == {"site": 1.0}


def test_a_wiring_of_today_stays_as_it_is() -> None:
    assert with_roles(shipped("default")) == shipped("default")

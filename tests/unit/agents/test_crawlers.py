"""A wiring is divided among crawlers and gathered again, and nothing of it is lost on the way."""

from typing import Any

import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.crawlers import compile_with_crawlers, copies_of, crawlers_of, gathered
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.engine.planning import plan
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.values.errors import UsageError

SEEDS = ["http://a.test/"]


def options(**given: Any) -> CrawlOptions:
    return build(all_options(), given)


def divided(number: int, **given: Any) -> Wiring:
    return compile_with_crawlers(SEEDS, options(crawlers=number, **given))


@pytest.mark.parametrize(
    "given",
    [{}, {"concurrency": 7}, {"rdf": True}, {"near_duplicates": "skip"}, {"recrawl": "adaptive"}, {"no_warc": True}],
)
def test_what_is_divided_can_run_and_is_gathered_into_what_it_was(given: dict[str, Any]) -> None:
    wiring = divided(3, **given)
    plan(wiring, catalog())
    whole, back = compile_wiring(SEEDS, options(**given)), gathered(wiring)
    assert crawlers_of(wiring) == 3 and crawlers_of(back) == 0
    assert (back.components, back.providers, back.connectors) == (whole.components, whole.providers, whole.connectors)


def test_every_request_in_flight_has_a_lease_and_a_worker() -> None:
    wiring = divided(3, concurrency=7)
    leases = [wiring.components[name].settings["slots"] for name in copies_of(wiring.components)["lease"]]
    workers = [wiring.components[name].workers for name in copies_of(wiring.components)["fetch"]]
    assert leases == workers == [3, 3, 3]


def test_settings_of_leases_hold_for_all_crawlers_and_for_the_next_run() -> None:
    before = compile_with_crawlers(
        SEEDS, options(crawlers=2), settings={"lease": {"lease": 7.0}, "take": {"renew": 2.0}}
    )
    after = compile_with_crawlers([], options(crawlers=3), before)
    for number in (1, 2, 3):
        assert after.components[f"lease-crawler-{number}"].settings["lease"] == 7.0
        assert after.components[f"take-crawler-{number}"].settings == {"renew": 2.0}


def test_crawlers_and_agents_exclude_each_other() -> None:
    before = divided(2)
    with pytest.raises(UsageError, match="leave out --agents"):
        compile_with_crawlers([], options(agents=2), before)
    assert crawlers_of(compile_with_crawlers([], options(agents=2, crawlers=0), before)) == 0


def test_the_option_that_was_given_is_the_one_to_leave_out() -> None:
    with pytest.raises(UsageError, match="leave out --designation and --masters, or choose --crawlers 0"):
        divided(2, designation="master", masters=2)

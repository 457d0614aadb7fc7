"""The rules of a crawl of several agents: who gets pages, who is started again, what is divided, whose log goes first."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.agents.crawl import SupervisedCrawl, is_divided
from gossamer.agents.membership import check_can_change, with_number, with_places, without
from gossamer.agents.process import AgentOrders, agent_wiring, part_of
from gossamer.agents.roster import Roster
from gossamer.agents.shares import LEAST_BYTES, Borrower, lent
from gossamer.agents.supervised import LONGEST_WAIT, MOST_VAIN, Restarts
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.engine.errors import SettingError
from gossamer.engine.planning import plan
from gossamer.engine.sheet import build
from gossamer.engine.wiring import ProviderPlan, Wiring
from gossamer.storage.logs import LOG_PATH, merge_logs
from gossamer.storage.members import write_members
from gossamer.values.errors import UsageError
from gossamer.values.settings import MOST_AGENTS

# -- restarts


def test_an_agent_that_worked_comes_back_at_once_however_often_it_dies() -> None:
    restarts = Restarts()
    assert {restarts.died(has_worked=True) for _ in range(500)} == {0.0}
    assert restarts.count == 500


def test_an_agent_that_never_works_comes_back_later_each_time_and_then_no_more() -> None:
    restarts = Restarts()
    waits = [restarts.died(has_worked=False) for _ in range(MOST_VAIN)]
    assert waits[-1] is None
    known = [wait for wait in waits if wait is not None]
    assert known == sorted(known)
    assert known[0] == 0.0
    assert 0 < known[-1] <= LONGEST_WAIT
    again = Restarts()
    for _ in range(MOST_VAIN - 1):
        assert again.died(has_worked=False) is not None
    assert again.died(has_worked=True) == 0.0, "who worked begins anew"
    assert again.died(has_worked=False) == 0.0


# -- pages


class Taker:
    """An agent that takes pages as far as its share goes."""

    def __init__(self, work: int) -> None:
        self.work = work
        self.pages = 0
        self.in_flight = 0
        self.share = 0

    def step(self, most: int, brings: bool) -> None:  # drawn
        if brings:
            self.pages += self.in_flight
            self.in_flight = 0
        free = max(0, min(most, self.work, self.share - self.pages - self.in_flight))
        self.work -= free
        self.in_flight += free

    def die(self) -> None:
        """What was in flight is lost, and so is the share."""
        self.work += self.in_flight
        self.in_flight = self.share = 0

    def borrower(self, name: str) -> Borrower:
        used = self.pages + self.in_flight
        return Borrower(name, used, self.share, wants=self.work > 0 and used >= self.share)


@given(
    st.integers(1, 400),
    st.lists(st.integers(0, 200), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 64), st.booleans(), st.integers(0, 9)), max_size=60),
)
def test_agents_never_take_one_page_more_than_the_limit_and_take_all_that_it_allows(
    limit: int, works: list[int], steps: list[tuple[int, int, bool, int]]
) -> None:
    agents = {f"agent-{number:02d}": Taker(work) for number, work in enumerate(works)}

    def lend() -> None:
        for name, share in lent(limit, [one.borrower(name) for name, one in agents.items()]).items():
            agents[name].share = share
        assert sum(max(one.share, one.pages + one.in_flight) for one in agents.values()) <= limit

    for index, most, brings, dies in steps:
        taker = list(agents.values())[index % len(agents)]
        if dies == 0:
            taker.die()
        taker.step(most, brings)
        lend()
        assert sum(one.pages + one.in_flight for one in agents.values()) <= limit
    for _ in range(4 * limit.bit_length() + 64):
        for taker in agents.values():
            taker.step(64, brings=True)
        lend()
    for taker in agents.values():
        taker.step(0, brings=True)
    assert sum(one.pages for one in agents.values()) == min(limit, sum(works))


@given(st.integers(1, 10**7), st.lists(st.integers(0, 10**6), min_size=1, max_size=5), st.integers(1, 60_000))
def test_agents_pass_the_limit_of_bytes_by_no_more_than_their_last_pages_and_reach_it(
    limit: int, works: list[int], size: int
) -> None:
    agents = {f"agent-{number:02d}": Taker(work) for number, work in enumerate(works)}
    for _ in range(2 * limit // LEAST_BYTES + 100):
        for taker in agents.values():
            while taker.work > 0 and taker.pages < taker.share:
                taker.pages += size
                taker.work -= size
        shares = lent(limit, [one.borrower(name) for name, one in agents.items()], LEAST_BYTES)
        for name, share in shares.items():
            agents[name].share = share
        assert sum(one.share for one in agents.values() if one.share > one.pages) <= limit
    used = sum(one.pages for one in agents.values())
    assert used <= limit + len(agents) * size
    assert used >= min(limit, sum(works))


# -- what is divided


@pytest.mark.parametrize("number", [2, 3, 5])
def test_agents_have_no_more_requests_in_flight_than_one_would(number: int) -> None:
    parts = [part_of("frontier", "concurrency", 64, number, index) for index in range(number)]
    assert sum(parts) == 64
    assert max(parts) - min(parts) <= 1
    assert sum(part_of("politeness", "rate", 10.0, number, index) for index in range(number)) == pytest.approx(10)
    assert part_of("politeness", "delay", 3.0, number, 0) == 3.0


def test_an_agent_waits_for_pages_that_it_is_lent_where_the_crawl_has_a_limit_of_them() -> None:
    wiring = compile_wiring(
        ["http://a.test/"], build(all_options(), {"max_pages": 7, "max_bytes": 9, "rate": 4, "concurrency": 9})
    )
    orders = AgentOrders("crawl", ("agent-00", "agent-01"))
    whole = plan(wiring, catalog())
    graph = plan(agent_wiring(whole.wiring, whole, orders, "agent-01", "/meeting"), catalog())
    sheet = graph.sheet("frontier")
    assert (sheet.max_pages, sheet.page_share, sheet.concurrency) == (None, 0, 4)  # type: ignore[attr-defined]
    assert (sheet.max_bytes, sheet.byte_share) == (None, 0)  # type: ignore[attr-defined]
    assert graph.sheet("politeness").rate == 2  # type: ignore[attr-defined]
    assert graph.wiring.components["fetch"].workers <= 4


# -- bad input


def options(folder: Path, **more: object) -> CrawlOptions:
    return build(all_options(), {"output": str(folder / "crawl"), **more})


@pytest.mark.parametrize("agents", [0, -1, MOST_AGENTS + 1])
def test_a_number_of_agents_out_of_bounds_is_refused(agents: int) -> None:
    with pytest.raises(SettingError, match="agents"):
        build(all_options(), {"agents": agents})


def test_what_cannot_be_divided_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    seeds = ["http://127.0.0.1:9/"]
    with pytest.raises(UsageError, match="concurrency 2 cannot be divided among 3"):
        SupervisedCrawl(seeds, options(tmp_path, agents=3, concurrency=2))
    with pytest.raises(UsageError, match="random walk"):
        SupervisedCrawl(seeds, options(tmp_path, agents=2, strategy="random-walk"))
    finer = {"ledger": {"division": "host"}, "commit": {"max_per_domain": 5}}
    with pytest.raises(UsageError, match="leave out max_per_domain"):
        SupervisedCrawl(seeds, options(tmp_path, agents=2), settings=finer)
    with pytest.raises(UsageError, match="one agent"):
        Crawl(seeds, options(tmp_path, agents=2))
    assert not (tmp_path / "crawl").exists()


def test_a_crawl_that_was_divided_once_stays_so_also_with_one_agent(tmp_path: Path) -> None:
    resume = {"output": str(tmp_path), "resume": True}
    assert not is_divided(build(all_options(), resume))
    assert is_divided(build(all_options(), {**resume, "agents": 2}))
    write_members(tmp_path, ["agent-00", "agent-01=0"])
    assert is_divided(build(all_options(), resume))
    assert is_divided(build(all_options(), {**resume, "agents": 1})), "its log and its files are those of agents"


@pytest.mark.parametrize("use", ["sieve", "url-trie", "bloom-seen", "opic-ledger"])
def test_nobody_joins_a_crawl_whose_state_cannot_be_handed_on(tmp_path: Path, use: str) -> None:
    wiring = Wiring(providers={"one": ProviderPlan(use)})
    with pytest.raises(UsageError, match="has 'one', whose state cannot be divided"):
        check_can_change(wiring, tmp_path)
    check_can_change(Wiring(providers={"ledger": ProviderPlan("ledger")}), tmp_path)


def test_those_who_join_have_names_that_are_free_and_those_who_had_left_come_back_first() -> None:
    assert with_number(["agent-01", "agent-07=2"], 5) == ("agent-01", "agent-07=2", "agent-00", "agent-02", "agent-03")
    assert with_number(["agent-00"], 1) == ("agent-00",)
    assert with_number(["agent-00", "agent-01", "agent-02@oslo"], 1) == ("agent-00", "agent-01=0", "agent-02=0@oslo")
    assert with_number(["agent-00=0", "agent-01", "agent-02=0@oslo"], 4) == (
        *("agent-00", "agent-01", "agent-02@oslo"),
        "agent-03",
    )
    assert without(["agent-00", "agent-01"], "agent-00") == ("agent-00=0", "agent-01")


def test_agents_stand_where_a_person_says() -> None:
    members = ("agent-00", "agent-01=2", "agent-02=0@oslo")
    assert with_places(members, ["agent-01=oslo", "agent-02=budapest"]) == (
        "agent-00",
        "agent-01=2@oslo",
        "agent-02=0@budapest",
    )
    for wrong, told in (
        ("agent-01", "AGENT=PLACE"),
        ("agent-07=oslo", "no agent 'agent-07'"),
        ("agent-01=a b", "AGENT@PLACE|names no agent"),
    ):
        with pytest.raises(UsageError, match=told):
            with_places(members, [wrong])


# -- the log


def logged(folder: Path, agent: str, *rows: tuple[str, str]) -> None:
    with (folder / f"logs/{agent}.jsonl").open("a") as file:
        for time, url in rows:
            row = {"event": "page", "url": url, "fetched_at": time} if time else {"event": "item", "url": url}
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def merged(folder: Path) -> list[str]:
    return [json.loads(line)["url"] for line in (folder / LOG_PATH).read_text().splitlines()]


def test_the_log_of_the_crawl_is_that_of_its_agents_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    members = ["agent-00", "agent-01"]
    assert merge_logs(tmp_path, members) == 0
    logged(tmp_path, "agent-00", ("2026-01-01T00:00:01Z", "a"), ("", "item of a"), ("2026-01-01T00:00:04Z", "d"))
    logged(tmp_path, "agent-01", ("2026-01-01T00:00:03Z", "c"), ("2026-01-01T00:00:02Z", "b, kept after c"))
    assert merge_logs(tmp_path, members) == 5
    assert merged(tmp_path) == ["a", "item of a", "c", "b, kept after c", "d"]
    logged(tmp_path, "agent-01", ("2026-01-01T00:00:09Z", "e"))
    with (tmp_path / LOG_PATH).open("a") as torn:
        torn.write('{"url": "what a kill left"')
    with (tmp_path / "logs/agent-00.jsonl").open("a") as half:
        half.write('{"url":"not whole yet"')
    assert merge_logs(tmp_path, members) == 1
    assert merged(tmp_path) == ["a", "item of a", "c", "b, kept after c", "d", "e"]
    assert merge_logs(tmp_path, members) == 0
    (tmp_path / LOG_PATH).unlink()
    assert merge_logs(tmp_path, members) == 6
    assert merged(tmp_path)[-1] == "e", "a merged log that is lost is made again"


def test_merges_at_the_same_time_leave_each_line_once(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    names = [f"page {number}" for number in range(3_000)]
    for agent in range(2):
        times = [
            (f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z", names[number])
            for number in range(3_000)
        ]
        logged(tmp_path, f"agent-0{agent}", *times[agent::2])
    with ThreadPoolExecutor(8) as pool:
        looks = [
            pool.submit(merge_logs, tmp_path, ["agent-00", "agent-01"], before=f"2026-01-01T00:{m:02}:00Z")
            for m in range(50)
        ]
        looks.append(pool.submit(merge_logs, tmp_path, ["agent-00", "agent-01"]))
        assert sum(look.result() for look in looks) == 3_000
    assert merged(tmp_path) == names


def test_the_log_is_merged_as_far_as_its_agents_have_committed_it(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    logged(tmp_path, "agent-00", ("2026-01-01T00:00:01Z", "a"))
    end = (tmp_path / "logs/agent-00.jsonl").stat().st_size
    logged(tmp_path, "agent-00", ("2026-01-01T00:00:02Z", "b"))
    assert merge_logs(tmp_path, ["agent-00"], {}) == 0
    assert merge_logs(tmp_path, ["agent-00"], {"logs/agent-00.jsonl": end}) == 1
    assert merged(tmp_path) == ["a"]
    assert merge_logs(tmp_path, ["agent-00"], before="2026-01-01T00:00:02Z") == 0
    assert merge_logs(tmp_path, ["agent-00"]) == 1
    assert merged(tmp_path) == ["a", "b"]


def test_the_number_of_agents_that_people_asked_for_outlives_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    write_members(tmp_path, ("agent-00", "agent-01"))
    graph = plan(compile_wiring(["http://a.test/"], CrawlOptions()), catalog())

    def roster(agents: int | None = None) -> Roster:
        return Roster(tmp_path, graph, CrawlOptions(resume=True, agents=agents), lambda line: None)

    (tmp_path / "state/supervisor").mkdir(parents=True)
    roster().want(graph, 3)
    again = roster()
    assert (again.has_changed, again.members) == (True, ("agent-00", "agent-01", "agent-02"))
    assert not roster(2).has_changed, "what the command line says comes first"
    for damaged in ("", "three", "\x00"):
        (tmp_path / "state/supervisor/wanted").write_text(damaged)
        assert not roster().has_changed

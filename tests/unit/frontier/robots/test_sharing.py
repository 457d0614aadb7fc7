"""A robots gate that shares: what one crawl was told, another one need not ask; what cannot be trusted is asked."""

import asyncio
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.engine.sheet import build
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.frontier.robots.machine import RobotsState
from gossamer.frontier.robots.sharing import (
    CLAIMED,
    LAYOUT,
    SharingRobots,
    SharingRobotsSheet,
    UserRobotsAnswers,
    UserRobotsAnswersSheet,
)
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

NOW = 1_700_000_000.0
DAY = 86_400.0
SITE = "http://a.test"
PUBLIC, PRIVATE = f"{SITE}/public", f"{SITE}/private/page"
RULES = Response(
    Outcome.OK, status=200, body=b"User-agent: *\nDisallow: /private\nCrawl-delay: 3", address="93.184.216.34"
)


def store(folder: Path, **settings: Any) -> UserRobotsAnswers:
    found = UserRobotsAnswers(build(UserRobotsAnswersSheet, {"folder": str(folder / "robots"), **settings}))
    asyncio.run(found.start())
    return found


def crawl(folder: Path, **settings: Any) -> SharingRobots:
    gate = SharingRobots(build(SharingRobotsSheet, settings))
    gate.answers = store(folder)
    return gate


def ask(gate: SharingRobots, url: str = PUBLIC, now: float = NOW) -> RobotsVerdict:
    return gate.judge(Task(url, "a.test"), now)


def behind(gate: SharingRobots) -> UserRobotsAnswers:
    """The store that a gate shares."""
    assert isinstance(gate.answers, UserRobotsAnswers)
    return gate.answers


def taught(folder: Path, response: Response = RULES, **settings: Any) -> None:
    """Another crawl has asked, and ended."""
    gate = crawl(folder, **settings)
    ask(gate)
    gate.learned(SITE, response, NOW)
    asyncio.run(gate.stop())
    asyncio.run(behind(gate).stop())


def test_what_one_crawl_was_told_another_one_does_not_ask(tmp_path: Path) -> None:
    taught(tmp_path)
    other = crawl(tmp_path)
    found = ask(other)
    assert (found.ruling, found.delay, found.is_news) == (RobotsRuling.ALLOWED, 3.0, True)
    assert not ask(other).is_news, "it is told once, to be kept once"
    denied = ask(other, PRIVATE)
    assert (denied.ruling, denied.rule, denied.line) == (RobotsRuling.DENIED, "Disallow: /private", 2)
    assert other.state(SITE), "it is kept as an answer of its own"


def test_an_answer_is_good_for_a_day_from_when_it_was_given(tmp_path: Path) -> None:
    taught(tmp_path)
    assert ask(crawl(tmp_path), now=NOW + DAY - 1).ruling is RobotsRuling.ALLOWED
    late = crawl(tmp_path)
    assert ask(late, now=NOW + DAY - 1).ruling is RobotsRuling.ALLOWED
    assert ask(late, now=NOW + DAY + 1).ruling is RobotsRuling.FETCH_FIRST
    assert ask(crawl(tmp_path, keep=60), now=NOW + 61).ruling is RobotsRuling.FETCH_FIRST, "this crawl keeps it shorter"
    assert ask(crawl(tmp_path), now=NOW - DAY).ruling is RobotsRuling.FETCH_FIRST, "it was given in the future"


def test_only_crawls_of_the_same_name_policy_and_view_share(tmp_path: Path) -> None:
    taught(tmp_path)
    for settings in ({"agent": "Other"}, {"policy": "paper"}, {"view": "staging"}):
        assert ask(crawl(tmp_path, **settings)).ruling is RobotsRuling.FETCH_FIRST, settings


def test_a_crawl_that_must_see_the_newest_asks_and_others_have_its_answer(tmp_path: Path) -> None:
    taught(tmp_path)
    fresh = crawl(tmp_path, reads=False)
    assert ask(fresh).ruling is RobotsRuling.FETCH_FIRST
    fresh.learned(SITE, Response(Outcome.CLIENT_ERROR, status=404, address="93.184.216.34"), NOW + 9)
    assert ask(crawl(tmp_path), PRIVATE).ruling is RobotsRuling.ALLOWED


@pytest.mark.parametrize(
    "response",
    [
        msgspec.structs.replace(RULES, address="127.0.0.1"),
        msgspec.structs.replace(RULES, address="10.1.2.3"),
        msgspec.structs.replace(RULES, address=""),
        msgspec.structs.replace(RULES, is_unverified=True),
        Response(Outcome.RATE_LIMITED, status=429, address="93.184.216.34"),
        Response(Outcome.BLOCKED, address="93.184.216.34"),
    ],
    ids=["this machine", "private network", "unknown address", "unverified", "limited", "shut"],
)
def test_what_holds_for_one_crawl_alone_is_not_shared(tmp_path: Path, response: Response) -> None:
    taught(tmp_path, response)
    assert ask(crawl(tmp_path)).ruling is RobotsRuling.FETCH_FIRST


def test_private_addresses_are_shared_if_the_user_says_so(tmp_path: Path) -> None:
    taught(tmp_path, msgspec.structs.replace(RULES, address="127.0.0.1"), private=True)
    assert ask(crawl(tmp_path)).ruling is RobotsRuling.ALLOWED


def test_a_redirect_from_a_private_address_stays_private(tmp_path: Path) -> None:
    gate = crawl(tmp_path)
    ask(gate)
    away = Response(Outcome.REDIRECT, status=301, headers=(("location", "http://b.test/r"),), address="10.0.0.1")
    gate.learned(SITE, away, NOW)
    assert ask(gate).url == "http://b.test/r"
    gate.learned(SITE, RULES, NOW)
    assert ask(crawl(tmp_path)).ruling is RobotsRuling.FETCH_FIRST


def test_while_one_process_asks_another_one_waits_but_not_for_a_dead_one(tmp_path: Path) -> None:
    mine = crawl(tmp_path)
    assert ask(mine).ruling is RobotsRuling.FETCH_FIRST
    file = next((tmp_path / "robots").glob("*.sqlite"))

    def asked_by(process: int, until: float) -> None:
        with sqlite3.connect(file) as database:
            database.execute("UPDATE claims SET process = ?, until = ?", (process, until))
        database.close()

    asked_by(os.getppid(), NOW + 5)
    waits = ask(mine)
    assert waits.ruling is RobotsRuling.WAIT and NOW < waits.until < NOW + 5
    assert ask(mine, now=NOW + 6).ruling is RobotsRuling.FETCH_FIRST, "nobody waits for ever"
    ended = subprocess.Popen(["true"])
    ended.wait()
    asked_by(ended.pid, NOW + CLAIMED)
    assert ask(mine).ruling is RobotsRuling.FETCH_FIRST, "it waits for a process that is gone"
    asked_by(os.getppid(), NOW + 10 * CLAIMED)
    assert ask(mine).ruling is RobotsRuling.FETCH_FIRST, "no claim is so long"


def test_a_crawl_that_knows_the_site_already_lets_others_ask(tmp_path: Path) -> None:
    taught(tmp_path, keep=9)
    knows = crawl(tmp_path)
    ask(knows, now=NOW + 10)
    with sqlite3.connect(next((tmp_path / "robots").glob("*.sqlite"))) as database:
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (1,)
        knows.restore(SITE, knows.state(SITE) or msgspec.msgpack.encode(RobotsState()))
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)
    database.close()


def test_damage_is_not_believed(tmp_path: Path) -> None:
    taught(tmp_path)
    file = next((tmp_path / "robots").glob("*.sqlite"))
    with sqlite3.connect(file) as database:
        name, state = database.execute("SELECT name, state FROM answers").fetchone()
    database.close()
    forged = msgspec.msgpack.decode(state)
    for at, value in ((0, "new"), (0, "new state"), (3, NOW + DAY), (3, float("nan")), (4, float("inf")), (2, None)):
        writer = store(tmp_path)
        writer.keep(name, msgspec.msgpack.encode([*forged[:at], value, *forged[at + 1 :]]), NOW)
        found = ask(crawl(tmp_path), now=NOW)
        is_shorter = at == 4  # it is good for as long as this crawl keeps its own
        assert found.ruling is (RobotsRuling.ALLOWED if is_shorter else RobotsRuling.FETCH_FIRST), (at, value)
    writer.keep(name, state, NOW)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE answers SET state = ?", (state[:-1] + b"\0",))
    database.close()
    gate = crawl(tmp_path)
    assert ask(gate).ruling is RobotsRuling.FETCH_FIRST
    assert behind(gate).metrics.snapshot()["answers_damaged"] == 1


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    (tmp_path / "robots").mkdir(mode=0o755)
    taught(tmp_path)
    paths = [tmp_path / "robots", *(tmp_path / "robots").iterdir()]
    assert len(paths) > 1 and all(path.stat().st_mode & 0o077 == 0 for path in paths)


def test_a_file_that_is_no_database_is_made_anew(tmp_path: Path) -> None:
    taught(tmp_path)
    file = tmp_path / "robots" / f"answers-{LAYOUT}.sqlite"
    file.write_bytes(b"not a database, whatever its name says" * 99)
    assert ask(crawl(tmp_path)).ruling is RobotsRuling.FETCH_FIRST
    taught(tmp_path)
    assert ask(crawl(tmp_path)).ruling is RobotsRuling.ALLOWED


def test_a_crawl_that_cannot_share_asks_by_itself_and_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "robots").write_text("a file in the place of the folder")
    lines: list[str] = []
    gate = SharingRobots()
    gate.answers = answers = UserRobotsAnswers(UserRobotsAnswersSheet(folder=str(tmp_path / "robots")))
    answers.report = lines.append
    asyncio.run(answers.start())
    assert ask(gate).ruling is RobotsRuling.FETCH_FIRST
    assert gate.learned(SITE, RULES, NOW).settled
    assert ask(gate).ruling is RobotsRuling.ALLOWED
    assert len(lines) == 1 and "asks every site itself" in lines[0]
    assert answers.metrics.snapshot()["failures"] == 1


def test_a_file_that_breaks_while_it_is_used_costs_nothing_else(tmp_path: Path) -> None:
    gate = crawl(tmp_path)
    with sqlite3.connect(next((tmp_path / "robots").glob("*.sqlite"))) as database:
        database.execute("DROP TABLE answers")
    database.close()
    assert ask(gate).ruling is RobotsRuling.FETCH_FIRST
    gate.learned(SITE, RULES, NOW)
    assert ask(gate).ruling is RobotsRuling.ALLOWED


def test_somebody_who_holds_the_file_holds_nobody_up(tmp_path: Path) -> None:
    gate = crawl(tmp_path)
    with sqlite3.connect(next((tmp_path / "robots").glob("*.sqlite")), isolation_level=None) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert ask(gate).ruling is RobotsRuling.FETCH_FIRST
        gate.learned(SITE, RULES, NOW)
        database.execute("ROLLBACK")
        gate.learned(SITE, RULES, NOW)
    database.close()
    assert ask(crawl(tmp_path)).ruling is RobotsRuling.ALLOWED, "it shares again"


def test_the_file_stays_within_its_bound(tmp_path: Path) -> None:
    answers = store(tmp_path, size=1 << 20)
    for number in range(1_100):
        answers.keep(f"s{number}", os.urandom(4_000), NOW + number)
    assert answers.metrics.snapshot()["shrunk"] >= 1
    assert answers.find("s1099") and not answers.find("s0")
    asyncio.run(answers.stop())
    assert (tmp_path / "robots" / f"answers-{LAYOUT}.sqlite").stat().st_size < 4 << 20

"""Proxies in turn: what fails rests, sessions stay, and who shares a place shares no connection."""

from pathlib import Path
from typing import Any

import pytest

from gossamer.engine.errors import SettingError
from gossamer.fetcher.proxies import FIRST_REST, LONGEST_REST, Proxies, addresses
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Task

THREE = ("http://a.test:1", "http://b.test:2", "http://me:pw@c.test:3")


class Hand:
    """A clock that is put forward by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def places(proxies: Proxies, count: int, session: str = "") -> list[str]:
    return [proxies.choose(session).place for _ in range(count)]


def test_proxies_take_turns_and_one_that_failed_rests_longer_each_time() -> None:
    clock = Hand()
    proxies = Proxies(THREE, clock)
    assert places(proxies, 4) == ["a.test:1", "b.test:2", "c.test:3", "a.test:1"]
    b = proxies.choose()
    rests = []
    for _ in range(9):
        proxies.failed(b)
        [told] = [one.rests for one in proxies.health() if one.rests]
        rests.append(told)
        assert set(places(proxies, 4)) == {"a.test:1", "c.test:3"}
        clock.advance(told)
        assert "b.test:2" in places(proxies, 3), "it is tried again after its rest"
    assert rests[:3] == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST] and rests[-1] == LONGEST_REST
    proxies.worked(b)
    proxies.failed(b)
    assert max(one.rests for one in proxies.health()) == FIRST_REST, "what has worked begins anew"


def test_where_all_rest_the_one_is_tried_that_may_be_soonest() -> None:
    clock = Hand()
    proxies = Proxies(THREE, clock)
    for proxy in proxies.members:
        proxies.failed(proxy)
        clock.advance(1.0)
    assert places(proxies, 2) == ["a.test:1", "a.test:1"] and sum(one.rests > 0 for one in proxies.health()) == 3


def test_a_session_keeps_its_proxy_until_that_fails_or_it_begins_anew() -> None:
    clock = Hand()
    proxies = Proxies(THREE, clock)
    first = proxies.choose("one")
    assert places(proxies, 5, "one") == [first.place] * 5
    proxies.failed(first)
    second = proxies.choose("one")
    assert second is not first and places(proxies, 3, "one") == [second.place] * 3
    proxies.renew("one")
    assert proxies.choose("one") is not second


def test_users_of_one_place_share_no_connection() -> None:
    proxies = Proxies(("http://one:pw@a.test:1", "http://two:pw@a.test:1", "http://b.test:1"), Hand())
    assert [proxies.is_shared(proxy) for proxy in proxies.members] == [True, True, False]


def test_a_file_names_one_a_line_and_must_be_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "proxies"
    file.write_text(f"# of mine\n{THREE[0]}\n\n  {THREE[1]}\n")
    file.chmod(0o644)
    with pytest.raises(SettingError, match="chmod 600"):
        addresses([f"@{file}"])
    file.chmod(0o600)
    monkeypatch.setenv("MY_PROXIES", " ".join(THREE[1:]))
    assert Proxies([f"@{file}", "$MY_PROXIES"], Hand()).health()[-1].proxy == "c.test:3"
    assert addresses([f"@{file}", "$MY_PROXIES"]) == [*THREE[:2], *THREE[1:]]
    file.write_text("# none\n")
    with pytest.raises(SettingError, match="names no proxy"):
        addresses([f"@{file}"])


def asked(fetching: Any, run: Any, proxies: tuple[str, ...], sessions: tuple[str, ...], web: FakeWeb) -> list[Outcome]:
    async def story() -> list[Outcome]:
        found = []
        async with fetching(web, HttpSheet(proxy=proxies)) as module:
            for session in sessions:
                task = Task("http://far.test/", "far.test", request=requested(session=session))
                found.append((await module.fetch(task)).outcome)
        return found

    outcomes: list[Outcome] = run(story())
    return outcomes


def test_each_user_of_a_proxy_is_sent_with_its_own_password_alone(run: Any, fetching: Any) -> None:
    with FakeWeb({"http://far.test/": FakePage("x")}) as web:
        proxies = tuple(f"http://{who}127.0.0.1:{web.port}" for who in ("one:1@", "two:2@"))
        outcomes = asked(fetching, run, proxies, ("a", "b", "a", "b"), web)
        told = [request.header("proxy-authorization") for request in web.requests]
    assert outcomes == [Outcome.OK] * 4
    assert told[0] == told[2] != told[1] == told[3] and all(told)


def test_a_user_is_forgotten_where_the_next_proxy_has_none(run: Any, fetching: Any) -> None:
    with FakeWeb({"http://far.test/": FakePage("x")}) as web:
        proxies = (f"http://one:1@127.0.0.1:{web.port}", f"http://localhost:{web.port}")
        asked(fetching, run, proxies, ("", "", ""), web)
        told = [request.header("proxy-authorization") for request in web.requests]
    assert [bool(one) for one in told] == [True, False, True]

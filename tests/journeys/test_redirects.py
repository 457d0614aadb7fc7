"""Redirects in a crawl: links of a kind of their own, counted in a row, never a way around a rule (faults, chapter C)."""

import json
from pathlib import Path
from typing import Any

from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb


def crawl(web: FakeWeb, folder: Path, **options: Any) -> tuple[Summary, dict[str, dict[str, Any]]]:
    """Crawl a fake web; returns the summary, and the rows of the log by URL without scheme and host."""
    settings = options.pop("settings", None)
    job = Crawl(
        [web.url("/")],
        build(all_options(), {"output": str(folder / "c"), "delay": 0, **options}),
        settings=settings,
        tables=False,
    )
    summary = run(job)
    rows = map(json.loads, (folder / "c" / "logs" / "crawl.jsonl").read_text().splitlines())
    return summary, {row["url"].removeprefix(web.url("/")[:-1]): row for row in rows}


def moved(location: str) -> FakePage:
    return FakePage(status=302, headers=(("Location", location),))


def endless(request: FakeRequest) -> FakePage:
    return moved(f"/hop?{int(request.target.partition('?')[2] or 0) + 1}")


def test_ten_redirects_in_a_row_are_followed_and_the_eleventh_target_is_refused_by_name(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/hop">x</a>', "/hop": endless}) as web:
        summary, rows = crawl(web, tmp_path)
        assert web.targets() == ["/", "/hop", *(f"/hop?{n}" for n in range(1, 11))]
    assert summary.state == "finished"
    assert rows["/hop?10"]["rejected"] == {"more than 10 redirects": 1}
    assert all("rejected" not in rows[f"/hop?{n}"] for n in range(1, 10))


def test_a_page_on_the_way_begins_the_count_anew(tmp_path: Path) -> None:
    pages = {"/": moved("/a"), "/a": moved("/b"), "/b": '<a href="/c">x</a>', "/c": moved("/d"), "/d": moved("/e")}
    with FakeWeb({**pages, "/e": "end"}) as web:
        summary, _ = crawl(web, tmp_path, settings={"links": {"max_redirects": 2}})
        assert web.targets() == ["/", "/a", "/b", "/c", "/d", "/e"]
    assert summary.outcomes == {"redirect": 4, "ok": 2}


def test_loops_of_redirects_end_by_themselves(tmp_path: Path) -> None:
    with FakeWeb({"/": moved("/a"), "/a": moved("/b"), "/b": moved("/a")}) as web:
        summary, _ = crawl(web, tmp_path)
        assert web.targets() == ["/", "/a", "/b"]
    assert summary.state == "incomplete", "no seed brought a document"


def test_a_redirect_off_scope_or_to_another_scheme_is_not_followed(tmp_path: Path) -> None:
    targets = ["http://elsewhere.test/", "file:///etc/passwd", "data:,x", "javascript:x", "gopher://127.0.0.1/"]
    links = "".join(f'<a href="/{n}">x</a>' for n in range(len(targets)))
    pages = {"/": links, **{f"/{n}": moved(target) for n, target in enumerate(targets)}}
    with FakeWeb(pages) as web:
        summary, rows = crawl(web, tmp_path, resolve=(web.resolve,))
        assert len(web.requests) == 1 + len(targets)
    assert summary.outcomes == {"ok": 1, "redirect": len(targets)}
    assert all(rows[f"/{n}"]["rejected"] for n in range(len(targets)))


def test_a_refresh_field_is_a_link_and_is_not_obeyed(tmp_path: Path) -> None:
    pages = {
        "/": FakePage("page", headers=(("Refresh", "0; url=/next"),)),
        "/next": FakePage("text", type="text/plain", headers=(("Refresh", "3;/last"),)),
        "/last": FakePage("page", headers=(("Refresh", "1000000000"),)),
    }
    with FakeWeb(pages) as web:
        summary, rows = crawl(web, tmp_path)
        assert web.targets() == ["/", "/next", "/last"]
    assert summary.outcomes == {"ok": 3}
    assert rows["/next"]["relation"] == "header refresh"
    assert rows["/next"]["depth"] == 1


def test_a_requisite_that_redirects_for_ever_stops_at_the_limit_of_redirects_with_a_limit_of_depth_too(
    tmp_path: Path,
) -> None:
    for name, limits in (("a", {}), ("b", {"depth": 2})):
        with FakeWeb({"/": '<img src="/hop">', "/hop": endless}) as web:
            summary, rows = crawl(web, tmp_path / name, page_requisites=True, **limits)
            assert web.targets() == ["/", "/hop", *(f"/hop?{n}" for n in range(1, 11))]
        assert summary.state == "finished"
        assert rows["/hop?10"]["rejected"] == {"more than 10 redirects": 1}


def test_bytes_of_a_location_stand_for_themselves(tmp_path: Path) -> None:
    pages = {
        "/": '<a href="/a">x</a><a href="/b">x</a><a href="/c">x</a>',
        "/a": moved("/кириллица/?q=ж".encode().decode("latin-1")),
        "/b": moved("/caf\xe9"),
        "/c": FakePage("c", headers=(("Refresh", "0; url=/\xc3\xa4"),)),
        "/%D0%BA%D0%B8%D1%80%D0%B8%D0%BB%D0%BB%D0%B8%D1%86%D0%B0/?q=%D0%B6": "a",
        "/caf%E9": "b",
        "/%C3%A4": "c",
    }
    with FakeWeb(pages) as web:
        summary, _ = crawl(web, tmp_path)
        assert sorted(web.targets()) == sorted(pages)
    assert summary.pages == 5


def gate(name: str, by: str = "") -> Any:
    """A page behind a redirect that sets a cookie, by itself or by another URL."""

    def answer(request: FakeRequest) -> FakePage:
        if f"{name}=1" in request.header("cookie"):
            return FakePage(f'<title>{name}</title><a href="/in-{name}">x</a>')
        return moved(by) if by else setting(name, request.target)

    return answer


def setting(name: str, location: str) -> FakePage:
    return FakePage(status=302, headers=(("Location", location), ("Set-Cookie", f"{name}=1; Path=/")))


def test_a_page_behind_a_cookie_is_had_where_cookies_are_kept(tmp_path: Path) -> None:
    pages = {
        "/": gate("seed"),
        "/in-seed": '<a href="/self">1</a><a href="/via">2</a>',
        "/self": gate("self"),
        "/via": gate("via", "/set"),
        "/set": setting("via", "/then"),
        "/then": moved("/via"),
    }
    with FakeWeb({**pages, "/in-self": "text", "/in-via": "text"}) as web:
        summary, rows = crawl(web, tmp_path, cookies="host")
        asked = sorted(web.targets())
    assert summary.state == "finished"
    assert asked == sorted([*pages, "/", "/self", "/via", "/in-self", "/in-via"])
    assert rows["/self"]["outcome"] == rows["/via"]["outcome"] == "ok"


def test_redirects_that_set_another_cookie_each_time_end_at_their_limit(tmp_path: Path) -> None:
    count = iter(range(100))
    with FakeWeb({"/": "<a href=/ever>x</a>", "/ever": lambda _: setting(f"c{next(count)}", "/ever")}) as web:
        crawl(web, tmp_path, cookies="host")
        assert web.targets() == ["/", *["/ever"] * 11]


def test_redirects_that_change_no_cookie_loop_no_longer_with_cookies_than_without(tmp_path: Path) -> None:
    pages = {"/": setting("c", "/a"), "/a": moved("/b"), "/b": setting("c", "/a")}
    with FakeWeb(pages) as web:
        crawl(web, tmp_path, cookies="host")
        assert web.targets() == ["/", "/a", "/b"]

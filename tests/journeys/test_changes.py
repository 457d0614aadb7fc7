"""`gossamer changes` and `gossamer diff`: a site that is changed by hand between visits, and what is told of it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import gossamer
from gossamer.cli.main import commands
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.engine.unit import SystemClock
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.errors import UsageError

DAY = 86_400

#: Words enough for a fingerprint of the text.
PROSE = [f"<p>paragraph {n} says word{n * 7} and text{n * 13} of{n * 3}</p>" for n in range(120)]


class LaterClock(SystemClock):
    """The machine's clock, days ahead."""

    def __init__(self, days: float) -> None:
        super().__init__()
        self._ahead = DAY * days

    def now(self) -> float:
        return super().now() + self._ahead

    def steady(self) -> float:
        return super().steady() + self._ahead


def page(*paragraphs: str) -> str:
    return "<html><head><title>shop</title></head><body>{}</body></html>".format("\n".join(paragraphs))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of three days: a page changes, one goes, one comes back, one stays."""
    folder = tmp_path_factory.mktemp("watched") / "c"
    links = '<p><a href="/prices">p</a> <a href="/old">o</a> <a href="/shy">s</a></p>'
    site = {
        "/": page(links, *PROSE),
        "/prices": page("<p>Tea: 3.50</p>", *PROSE),
        "/old": page("old"),
        "/shy": page("shy"),
    }
    with FakeWeb(site) as web:
        given = {"delay": 0, "output": str(folder), "recrawl": "every=12h", "linger": 0.0, "max_interval": 12 * 3_600.0}
        run(Crawl([web.url("/")], build(all_options(), given)))
        for day in range(1, 4):
            web.pages["/prices"] = page("<p>Tea: 3.90</p>", *PROSE[: 100 - 20 * day], "<p>\x1b[31mnew =1+1</p>")
            web.pages["/old"] = FakePage(status=404)
            web.pages["/shy"] = FakePage(status=404) if day < 3 else page("shy")
            run(Crawl([], build(all_options(), {"resume": True, "output": str(folder)}), clock=LaterClock(day)))
    return folder


def told(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["changes", *arguments], standalone_mode=False, catch_exceptions=False)


def listed(folder: Path, *options: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in told(str(folder), "-f", "jsonl", *options).stdout.splitlines()]


def test_changes_are_told_in_their_order_and_what_stays_the_same_is_not(watched: Path) -> None:
    found = [(str(row["url"]).rpartition("/")[2], row["change"]) for row in listed(watched)]
    assert sorted(found[:1]) == [("prices", "changed")]
    assert sorted(found[1:4]) == [("old", "gone"), ("prices", "changed"), ("shy", "gone")]
    assert sorted(found[4:]) == [("prices", "changed"), ("shy", "back")]


def test_a_change_stands_beside_the_visit_before_that_found_the_page(watched: Path) -> None:
    with Database(watched) as database:
        rows = list(
            database.ask(
                "SELECT change, bytes_before, bytes, status_before, status, similarity FROM changes ORDER BY url, fetched_at"
            )
        )
    gone = next(row for row in rows if row[0] == "gone")
    assert (gone[3], gone[4]) == (200, 404), "the first 404 is no version of the page"
    changed = next(row for row in rows if row[0] == "changed")
    assert changed[1] > changed[2] and 0 <= changed[5] < 1


def test_changes_are_chosen_by_time_host_and_kind(watched: Path) -> None:
    assert len(listed(watched, "--kind", "gone")) == 2
    assert len(listed(watched, "--host", "127.0.0.1")) == 6 and listed(watched, "--host", "example.org") == []
    assert len(listed(watched, "--since", "1d")) == 6, "the clock of the crawl is ahead of ours"
    assert len(listed(watched, "--since", "2999-01-01")) == 0
    assert len(listed(watched, "--limit", "2")) == 2


def test_a_table_of_changes_obeys_no_terminal_and_a_spreadsheet_calculates_nothing(watched: Path) -> None:
    assert "\x1b" not in told(str(watched)).stdout
    assert told(str(watched), "-f", "csv").stdout.startswith("fetched_at,change,similarity,")


@pytest.mark.parametrize("when", ["yesterday", "7", "d", ""])
def test_a_time_that_is_none_is_refused_with_how_one_is_written(watched: Path, when: str) -> None:
    with pytest.raises(UsageError, match="write a time, as 2026-03-01"):
        told(str(watched), "--since", when)


def diffed(folder: Path, *arguments: str) -> list[str]:
    with Database(folder) as database:
        ((url,),) = database.ask("SELECT DISTINCT url FROM pages_all WHERE url LIKE '%/prices'")
    line = [str(folder), url, *arguments]
    return (
        CliRunner().invoke(commands, ["diff", *line], standalone_mode=False, catch_exceptions=False).stdout.splitlines()
    )


def test_a_difference_reads_as_people_read_it_and_names_both_versions(watched: Path) -> None:
    lines = diffed(watched)
    assert lines[0].startswith("--- http") and lines[1].startswith("+++ http") and lines[2].startswith("@@ ")
    assert [line for line in lines[3:] if line[0] == "+"] == []
    assert len([line for line in lines[3:] if line[0] == "-"]) == 20
    assert not any("\x1b" in line for line in lines)


def test_two_versions_are_named_by_their_times(watched: Path) -> None:
    with Database(watched) as database:
        times = [
            when.strftime("%Y%m%d%H%M%S")
            for (when,) in database.ask("SELECT fetched_at FROM pages_all WHERE url LIKE '%/prices' ORDER BY 1")
        ]
    lines = diffed(watched, "--at", times[0], times[1])
    assert "-Tea: 3.50" in lines and "+Tea: 3.90" in lines
    source = diffed(watched, "--source", "-U", "0", "--at", times[0], times[1])
    assert any(line.startswith("-") and "<p>Tea: 3.50</p>" in line for line in source)
    with pytest.raises(UsageError, match="both times name the version"):
        diffed(watched, "--at", times[0], times[0])


def test_a_page_with_one_version_has_no_difference(watched: Path) -> None:
    with pytest.raises(UsageError, match="is not in the archive"):
        CliRunner().invoke(
            commands, ["diff", str(watched), "http://127.0.0.1/x"], standalone_mode=False, catch_exceptions=False
        )
    with pytest.raises(UsageError, match="name a version by its time"):
        diffed(watched, "--at", "now", "then")


def test_handlers_see_their_pages_again_and_items_tell_what_moved(tmp_path: Path) -> None:
    asked: list[str] = []

    def tea(request: FakeRequest) -> str:
        asked.append(request.target)
        return f"<h1>Tea</h1><b class=price>{3 + len(asked) // 3}.50</b>"

    with FakeWeb({"/": '<a class="p" href="/tea">t</a>', "/tea": tea}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page()
        def listing(page: gossamer.Page) -> gossamer.Results:
            yield page.follow_all(".p", label="product", data={"shelf": 7})

        @spider.page("product")
        def product(page: gossamer.Page) -> gossamer.Results:
            yield {"price": page.number(".price"), "shelf": page.data["shelf"]}

        spider.run(output=str(tmp_path / "c"), recrawl="every=100ms", linger=30.0, max_time=2.5)
    with Database(tmp_path / "c") as database:
        rows = list(
            database.ask(
                "SELECT i.data, lag(i.data) OVER (PARTITION BY i.url ORDER BY p.fetched_at) AS before "
                "FROM items_all i JOIN pages_all p USING (visit) QUALIFY i.data <> before ORDER BY p.fetched_at"
            )
        )
    assert len(asked) > 3
    assert (json.loads(rows[0][1]), json.loads(rows[0][0])) == ({"price": 3.5, "shelf": 7}, {"price": 4.5, "shelf": 7})

"""A crawl steered from outside while it runs, and looked at and changed while it rests."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from warcio.archiveiterator import ArchiveIterator

from gossamer.agents.handing_over import forget_note
from gossamer.analysis.why import story_of
from gossamer.crawls.control import resting
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.messages import (
    BlockHosts,
    Change,
    Checkpoint,
    Checkpoints,
    Continue,
    Decide,
    Pause,
    Rewire,
    Status,
    Stop,
    Suspend,
    Undo,
    Unsuspend,
)
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.steering import set_values
from gossamer.crawls.control.wire import RequestRefused
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.crawls.trap_review import ListedFamily, suspicions_of
from gossamer.engine.sheet import build, properties
from gossamer.engine.wiring import read
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.errors import CrawlDirectoryError, UsageError

Script = Callable[[Control], Any]

#: Options of a crawl that is quick on loopback, and can be resumed.
QUICK = {"delay": 0, "per_host": 2}


@pytest.fixture(autouse=True)
def runtime(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime directory of our own."""
    (socket_folder / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_folder / "run"))


def crawl(
    seeds: list[str],
    folder: Path,
    script: Script | None = None,
    settings: dict[str, dict[str, object]] | None = None,
    **options: Any,
) -> Summary:
    """Run a crawl to its end; once its first page is kept, a script steers it from a thread."""
    job = Crawl(
        seeds, build(all_options(), {**QUICK, "output": str(folder), **options}), settings=settings, tables=False
    )

    def steer() -> None:
        assert script is not None
        with Control(folder) as control:
            until(lambda: look(control).fetched)
            script(control)

    async def both() -> Summary:
        running = asyncio.ensure_future(job.run())
        while not job.working and not running.done():
            await asyncio.sleep(0.001)
        if script is not None:
            try:
                await asyncio.to_thread(steer)
            except BaseException:
                job.abort()
                await running
                raise
        return await running

    return asyncio.run(asyncio.wait_for(both(), 60))


def look(control: Control, *, units: bool = False) -> CrawlStanding:
    found: CrawlStanding = control.told(Status(units), CrawlStanding)
    return found


def settled(control: Control) -> CrawlStanding:
    """How it stands once nothing is in flight."""
    return until(lambda: None if (now := look(control)).in_flight else now)


def records(folder: Path) -> list[str]:
    """URLs of the archive's answers, robots.txt apart, as the fake web keeps it apart."""
    found = []
    for path in sorted(folder.glob("warc/*.warc.gz")):
        with path.open("rb") as file:
            found += [
                record.rec_headers.get_header("WARC-Target-URI")
                for record in ArchiveIterator(file)
                if record.rec_type in ("response", "revisit")
            ]
    return [url for url in found if not url.endswith("/robots.txt")]


def test_status_says_the_same_while_it_runs_and_when_it_rests(tmp_path: Path) -> None:
    seen: list[CrawlStanding] = []
    with FakeWeb.tree(3, 4, latency=0.002) as web:
        summary = crawl([web.url("/")], tmp_path / "c", lambda control: seen.append(look(control, units=True)))
    (now,) = seen
    assert (now.state, now.process > 0, now.limits) == ("running", True, {})
    assert 0 < now.fetched <= summary.fetched
    assert {"frontier", "commit", "ledger", "politeness"} <= {unit.name for unit in now.units}
    assert {"tasks", "visits"} <= {connector.name for connector in now.connectors}
    after = standing_at_rest(tmp_path / "c")
    for field in ("crawl", "state", "pages", "fetched", "unique_documents", "bytes", "outcomes", "queued", "hosts"):
        assert getattr(after, field) == getattr(summary, field), field
    assert (after.state, after.process) == ("finished", 0)


def test_a_paused_crawl_asks_for_nothing_and_then_misses_nothing(tmp_path: Path) -> None:
    def script(control: Control) -> None:
        control.do(Pause())
        first = settled(control)
        asked, kept = len(web.requests), len(records(tmp_path / "c"))
        for _ in range(100):
            assert look(control).state == "paused"
        assert (len(web.requests), look(control).fetched) == (asked, first.fetched)
        assert kept == asked
        control.do(Continue())
        assert look(control).state != "paused"

    with FakeWeb.tree(4, 4, latency=0.001) as web:
        summary = crawl([web.url("/")], tmp_path / "c", script)
        assert summary.state == "finished"
        assert Counter(map(web.url, web.targets())) == Counter(web.expected)


def test_stop_ends_gracefully_and_resume_fetches_the_rest_once(tmp_path: Path) -> None:
    with FakeWeb.tree(4, 4, latency=0.001) as web:
        stopped = crawl([web.url("/")], tmp_path / "c", lambda control: control.do(Stop()))
        assert (stopped.state, stopped.exit_code) == ("stopped", 3)
        assert standing_at_rest(tmp_path / "c").state == "stopped"
        assert stopped.fetched < len(web.expected)
        rest = crawl([], tmp_path / "c", resume=True)
        assert (rest.state, rest.pages) == ("finished", len(web.expected))
        assert Counter(map(web.url, web.targets())) == Counter(web.expected)


def test_stop_at_once_loses_nothing(tmp_path: Path) -> None:
    with FakeWeb.tree(4, 4, latency=0.005) as web:
        stopped = crawl([web.url("/")], tmp_path / "c", lambda control: control.do(Stop(now=True)))
        assert stopped.state == "stopped"
        assert crawl([], tmp_path / "c", resume=True).pages == len(web.expected)
        assert len(records(tmp_path / "c")) - len(set(records(tmp_path / "c"))) == 0


def test_settings_change_at_once_and_for_every_later_run(tmp_path: Path) -> None:
    def script(control: Control) -> None:
        told = control.do(Change({"delay": "50ms", "frontier.concurrency": "3"}))
        assert told == "politeness.delay = 0.05, frontier.concurrency = 3"
        assert control.do(Change({"retries": "0"})) == "politeness.retries = []"
        assert control.do(Change({"user-agent": "Gossamer/2.0"})) == 'http.user_agent = "Gossamer/2.0"'
        for key in ("user-agent", "http.user_agent"):
            with pytest.raises(RequestRefused, match=r"robots\.txt was read for 'Gossamer'"):
                control.do(Change({key: "Other/2.0"}))
        for key, value in (("header", "X-Api-Key: k"), ("http.header", '["X-Api-Key: k"]')):
            with pytest.raises(RequestRefused, match="looks secret goes to the hosts of the seeds alone"):
                control.do(Change({key: value}))
        control.do(Change({"delay": "0", "max-pages": "60"}))
        assert look(control).limits == {"max_pages": 60.0}

    with FakeWeb.tree(4, 4, latency=0.001) as web:
        summary = crawl([web.url("/")], tmp_path / "c", script)
        assert (summary.state, summary.pages) == ("limit", 60)
        again = Crawl([], build(all_options(), {"output": str(tmp_path / "c"), "resume": True}), tables=False)
        assert again.graph.components["frontier"].sheet.concurrency == 3  # type: ignore[attr-defined]
        assert crawl([], tmp_path / "c", resume=True, max_pages=70).pages == 70
    log = [json.loads(line) for line in (tmp_path / "c" / "logs" / "steering.jsonl").read_text().splitlines()]
    assert [entry["do"] for entry in log] == ["set", "set", "set", "set"]
    assert log[0]["values"] == {"delay": "50ms", "frontier.concurrency": "3"}


def test_a_crawl_that_would_wait_for_retries_without_end_ends_when_nothing_is_to_be_tried_again(tmp_path: Path) -> None:
    def script(control: Control) -> None:
        until(lambda: any(wait.why == "retries" for wait in settled(control).waits))
        assert control.do(Change({"retries": "0"})) == "politeness.retries = [], frontier.linger = 30.0"

    with FakeWeb({"/": '<a href="/a">', "/a": FakePage("broken", status=500)}) as web:
        settings: dict[str, dict[str, object]] = {"politeness": {"retries": [600.0], "delay": 0.0}}
        done = crawl([web.url("/")], tmp_path / "c", script, settings=settings, linger="forever")
        assert web.targets() == ["/", "/a"]
    assert (done.state, done.exit_code, done.queued) == ("incomplete", 4, 1)


REFUSED = [
    ({"delay": "0", "dely": "1"}, "did you mean 'delay'"),
    ({"delay": "0", "politness.delay": "1"}, "did you mean 'politeness'"),
    ({"delay": "0", "politeness.dealy": "1"}, "did you mean 'delay'"),
    ({"delay": "0", "concurrency": "0"}, "at least 1"),
    ({"delay": "0", "concurrency": "many"}, "not a quantity"),
    ({"delay": "0", "ledger.cache": "1GB"}, "only with a restart"),
    ({"delay": "0", "politeness.blocked": "a b"}, "is not a host or domain"),
]


#: A value for each option that can change while a crawl runs, and a setting that has it then.
LIVE = {
    "scope": ("any", "scope.scope", "any"),
    "include": ('["/a", "/b"]', "patterns.include", ("/a", "/b")),
    "exclude": ("zzz", "patterns.exclude", ("zzz",)),
    "normalize": ("www", "links.normalise", None),
    "ads": ("keep", "noise.drop", False),
    "traps": ("report", "traps.cut", False),
    "filter": ('["depth < 9", "store: size < 1MB"]', "expressions.store", ("size < 1MB",)),
    "only": ("test.*", "constraints.only", ("test.*",)),
    "never": ("org.*", "constraints.never", ("org.*",)),
    "max_pages": ("500", "frontier.max_pages", 500),
    "max_pages_per_host": ("500", "commit.max_per_host", 500),
    "max_time": ("9m", "frontier.max_time", 540.0),
    "total_time": ("9m", "frontier.total_time", 540.0),
    "max_bytes": ("1GB", "frontier.max_bytes", 1_000_000_000),
    "min_free_disk": ("1kB", "frontier.min_free_disk", 1000),
    "until": ("title matches never", "expressions.until", "title matches never"),
    "max_page_size": ("2MB", "http.max_body", 2_000_000),
    "max_links": ("70", "links.max_links", 70),
    "depth": ("9", "ledger.depth", 9),
    "max_agents": ("1", "frontier.max_agents", 1),
    "concurrency": ("70", "frontier.concurrency", 70),
    "per_host": ("3", "politeness.per_host", 3),
    "delay": ("1ms", "politeness.delay", 0.001),
    "domain_delay": ("1ms", "politeness.domain_delay", 0.001),
    "ip_delay": ("1ms", "politeness.ip_delay", 0.001),
    "rate": ("900", "politeness.rate", 900.0),
    "bandwidth": ("900MB/s", "politeness.bandwidth", 900e6),
    "retries": ("1", "politeness.retries", (10.0,)),
    "linger": ("forever", "frontier.linger", "forever"),
    "sitemaps": ("true", "commit.sitemaps", True),
    "user_agent": ("Gossamer/9", "http.user_agent", "Gossamer/9"),
    "contact": ("me@example.org", "http.user_agent", None),
    "header": ("X-A: b", "http.header", ("X-A: b",)),
    "cookies": ("host", "http.cookies", "host"),
    "proxy": ("http://127.0.0.1:9/", "http.proxy", ("http://127.0.0.1:9/",)),
    "http2": ("true", "http.http2", True),
    "ca_file": ("", "http.ca_file", ""),
    "resolve": ("*.a.test=127.0.0.1", "dns.resolve", ("*.a.test=127.0.0.1",)),
    "allow_network": ("10.0.0.0/8", "dns.allow_networks", ("10.0.0.0/8",)),
    "page_requisites": ("true", "html.requisites", True),
    "language": ("de", "process.languages", ("de",)),
    "follow_nofollow": ("true", "process.obey_nofollow", False),
}


def test_every_option_changes_while_a_crawl_runs_or_is_refused_with_the_reason(tmp_path: Path) -> None:
    options = {prop.name: prop for prop in properties(all_options())}
    assert {name for name, prop in options.items() if prop.live} == set(LIVE)

    async def story(job: Crawl) -> None:
        running = asyncio.ensure_future(job.run())
        while not job.working:
            await asyncio.sleep(0.001)
        job.pause()
        try:
            for name, prop in options.items():
                key = name.replace("_", "-")
                if prop.live:
                    value, target, expected = LIVE[name]
                    await set_values(job, {key: value})
                    unit, setting = target.split(".")
                    stands = getattr(job.graph.sheet(unit), setting)
                    assert expected is None or stands == expected, name
                else:
                    with pytest.raises(
                        UsageError, match=f"option '{key}' cannot change while a crawl runs: "
                    ) as caught:
                        await set_values(job, {key: str(prop.default)})
                    assert prop.reason in str(caught.value)
            assert job.graph.wiring.components["fetch"].workers == 70, "as many fetchers as requests in flight"
        finally:
            job.abort()
            await running

    with FakeWeb.tree(2, 3) as web:
        given = {**QUICK, "output": str(tmp_path / "c"), "depth": 20}
        job = Crawl([web.url("/")], build(all_options(), given), tables=False)
        asyncio.run(asyncio.wait_for(story(job), 60))


def test_a_setting_that_does_not_do_changes_none(tmp_path: Path) -> None:
    def script(control: Control) -> None:
        control.do(Pause())
        before = (tmp_path / "c" / "crawl.toml").read_text()
        for values, says in REFUSED:
            with pytest.raises(RequestRefused, match=says) as caught:
                control.do(Change(values))
            assert caught.value.exit_code == 2
            assert (tmp_path / "c" / "crawl.toml").read_text() == before
        control.do(Continue())

    with FakeWeb.tree(3, 4, latency=0.001) as web:
        assert crawl([web.url("/")], tmp_path / "c", script, delay=0.01).state == "finished"


def two_hosts(size: int) -> FakeWeb:
    """Two hosts whose first pages link to many pages of their own."""
    pages: dict[str, Any] = {}
    for host in ("a", "b"):
        links = "".join(f'<a href="/{number}">x</a>' for number in range(size))
        pages[f"http://{host}.test/"] = FakePage(links, latency=0.001)
        pages |= {f"http://{host}.test/{number}": FakePage(f"{host} {number}", latency=0.001) for number in range(size)}
    return FakeWeb(pages)


def asked(web: FakeWeb, host: str) -> int:
    return sum(request.host.startswith(host) for request in web.requests)


def test_a_blocked_domain_is_asked_no_more_and_stays_blocked(tmp_path: Path) -> None:
    counts: list[int] = []

    def script(control: Control) -> None:
        assert control.do(BlockHosts(["A.test", "other.test"])) == "blocked: a.test, other.test; 2 in all"
        counts.append(asked(web, "a.test") + look(control).in_flight)
        control.do(Stop())

    with two_hosts(200) as web:
        seeds = ["http://a.test/", "http://b.test/"]
        options = {"resolve": [web.resolve], "domain_delay": 0}
        crawl(seeds, tmp_path / "c", script, **options)
        assert asked(web, "a.test") <= counts[0]
        counts = [asked(web, "a.test")]
        rest = crawl([], tmp_path / "c", resume=True)
        assert asked(web, "a.test") == counts[0]
        assert (rest.state, rest.queued) == ("finished", 0)
        assert rest.outcomes["blocked"] == 201 - (rest.fetched - 201)
        assert story_of(tmp_path / "c", "http://a.test/199").blocked_by == "a.test"


def test_when_every_host_is_blocked_the_crawl_ends_with_nothing_queued(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 20, latency=0.001) as web:
        summary = crawl([web.url("/")], tmp_path / "c", lambda control: control.do(BlockHosts(["127.0.0.1"])))
    assert (summary.state, summary.queued) == ("finished", 0)
    assert summary.outcomes["blocked"] == summary.discovered - summary.fetched


def test_one_unit_is_suspended_and_goes_on_and_a_stop_lets_all_go_on(tmp_path: Path) -> None:
    def suspended(control: Control) -> list[str]:
        return [one.name for one in control.told(Status(units=True), CrawlStanding).units if one.is_suspended]

    def script(control: Control) -> None:
        assert control.do(Suspend("process")) == "process is suspended"
        assert suspended(control) == ["process"]
        [told] = [one for one in control.told(Status(), CrawlStanding).problems if one.what == "suspended"]
        assert told.evidence == "process" and told.command.endswith("--unit process")
        assert control.do(Unsuspend("process")) == "process goes on"
        assert suspended(control) == []
        for name, words in {"robots": "is a provider", "proces": "did you mean 'process'"}.items():
            with pytest.raises(RequestRefused, match=words):
                control.do(Suspend(name))
        assert control.do(Unsuspend("process")) == "process goes on", "it does already"
        control.do(Suspend("links"))
        control.do(Stop())

    with FakeWeb.tree(3, 4, latency=0.01) as web:
        stopped = crawl([web.url("/")], tmp_path / "c", script)
        assert stopped.state == "stopped"
        whole = crawl([], tmp_path / "c", resume=True)
        assert (whole.state, whole.pages) == ("finished", len(web.expected))


def test_what_is_no_host_is_not_blocked(tmp_path: Path) -> None:
    def script(control: Control) -> None:
        with pytest.raises(RequestRefused, match="is not a host or domain"):
            control.do(BlockHosts(["a.test", "http://b.test/x"]))
        assert look(control).blocked == []

    with FakeWeb.tree(3, 4, latency=0.001) as web:
        crawl([web.url("/")], tmp_path / "c", script)


def test_going_back_to_a_checkpoint_fetches_again_what_came_after_and_keeps_what_was_archived(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    kept: list[CrawlStanding] = []

    def script(control: Control) -> None:
        control.do(Pause())
        kept.append(settled(control))
        assert control.do(Checkpoint("early")) == "checkpoint early is kept"
        with pytest.raises(RequestRefused, match="there is a checkpoint 'early' already"):
            control.do(Checkpoint("early"))
        with pytest.raises(CrawlDirectoryError, match="in use by process"):
            resting.restore(folder, "early", forget_note)
        assert control.names(Checkpoints()) == ["early"]
        control.do(Continue())

    with FakeWeb.tree(3, 4, latency=0.001) as web:
        whole = crawl([web.url("/")], folder, script)
        assert whole.pages == len(web.expected)
        archived = len(records(folder))
        with pytest.raises(UsageError, match="there is no checkpoint 'late'; known: early"):
            resting.restore(folder, "late", forget_note)
        resting.restore(folder, "early", forget_note)
        back = standing_at_rest(folder)
        assert (back.state, back.pages, back.queued) == ("stopped", kept[0].pages, kept[0].queued)
        again = crawl([], folder, resume=True)
        assert (again.state, again.pages) == ("finished", len(web.expected))
        assert len(records(folder)) == archived + whole.pages - kept[0].pages


def test_a_crawl_at_rest_is_looked_at_without_being_changed(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 4, latency=0.01) as web:
        crawl([web.url("/")], tmp_path / "c", lambda control: control.do(Stop()))
    first = standing_at_rest(tmp_path / "c")
    assert standing_at_rest(tmp_path / "c") == first
    with pytest.raises(NotRunning):
        Control(tmp_path / "c")
    name = resting.checkpoint(tmp_path / "c", "")
    assert resting.checkpoints(tmp_path / "c") == [name]
    assert "a.test" in resting.block(tmp_path / "c", ["a.test"])
    again = standing_at_rest(tmp_path / "c")
    assert (again.state, again.pages, again.queued) == (first.state, first.pages, first.queued)


def test_a_directory_whose_ledger_is_gone_is_told_as_damaged(tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").touch()
    with pytest.raises(CrawlDirectoryError, match="has no ledger"):
        standing_at_rest(tmp_path)


def test_a_url_has_a_story_while_it_waits_and_after(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    told = {}

    def script(control: Control) -> None:
        control.do(Pause())
        settled(control)
        told["waiting"] = story_of(folder, web.url("/3/3/3/#top"))
        told["done"] = story_of(folder, web.url("/").upper())
        control.do(Continue())

    with FakeWeb.tree(3, 4, latency=0.002) as web:
        crawl([web.url("/")], folder, script, exclude=["/2$"])
        done = told["done"]
        assert (done.state, done.outcome, done.relation, done.depth) == ("done", "ok", "seed", 0)
        assert [(one.part, one.canonical) for one in done.normalised] == [("scheme", "http")]
        waiting = told["waiting"]
        assert waiting.state in ("queued", "unknown")
        assert ("fragment", "#top") in [(one.part, one.given) for one in waiting.normalised]
        found = story_of(folder, web.url("/3/3/3"))
        assert (found.state, found.outcome, found.depth) == ("done", "ok", 3)
        assert (found.discovered_from, found.relation) == (web.url("/3/3"), "a href")
        assert found.robots is not None and found.robots.ruling == "allowed"
        assert [visit["status"] for visit in found.visits] == [200]
        assert found.record is not None and (folder / found.record["file"]).stat().st_size > found.record["offset"]
        refused = story_of(folder, web.url("/2"))
        assert refused.state == "refused"
        assert [one.filter for one in refused.filters if one.verdict] == ["patterns"]
        tracked = story_of(folder, web.url("/3?utm_source=y"))
        assert (tracked.url, tracked.state) == (web.url("/3"), "done")
        assert story_of(folder, web.url("/nowhere")).state == "unknown"
        with pytest.raises(UsageError, match="not a URL"):
            story_of(folder, "http://")


def test_robots_rules_are_told_with_their_line(tmp_path: Path) -> None:
    pages = {
        "/": '<a href="/private/x">x</a>',
        "/robots.txt": FakePage("User-agent: *\nDisallow: /private\n", type="text/plain"),
    }
    with FakeWeb(pages) as web:
        crawl([web.url("/")], tmp_path / "c")
        story = story_of(tmp_path / "c", web.url("/private/x"))
    assert (story.state, story.outcome) == ("done", "robots_denied")
    assert story.robots is not None
    assert (story.robots.ruling, story.robots.rule, story.robots.line) == ("denied", "Disallow: /private", 2)


# -- rewiring


def test_a_graph_is_rewired_from_outside_and_resumes_rewired(tmp_path: Path) -> None:
    cache = (
        '[providers.recent]\nuse = "recently-seen"\nproviders = { behind = "seen" }\n'
        '[components.url-seen.providers]\nseen = "recent"\n[connectors.checked]\naddress = "local:"\n'
    )
    told: list[str] = []

    def script(control: Control) -> None:
        control.do(Pause())
        settled(control)
        told.append(control.do(Rewire(cache, "cache.toml")))
        told.append(control.do(Undo()))
        told.append(control.do(Rewire(cache, "cache.toml")))
        with pytest.raises(RequestRefused, match=r"wrong\.toml: .*no provider 'recnt'; did you mean 'recent'"):
            control.do(Rewire('[components.url-seen.providers]\nseen = "recnt"', "wrong.toml"))
        with pytest.raises(RequestRefused, match=r"components\.frontier: cannot leave .*it knows what is in flight"):
            control.do(Rewire("[components.frontier]\ninstances = 2"))
        assert "recent" in {unit.name for unit in look(control, units=True).units}
        control.do(Stop())

    with FakeWeb.tree(3, 4, latency=0.002) as web:
        crawl([web.url("/")], tmp_path / "c", script)
        assert read(tmp_path / "c" / "crawl.toml").providers["recent"].use == "recently-seen"
        summary = crawl([], tmp_path / "c", lambda control: told.append(control.do(Undo())), resume=True)
        assert (summary.state, summary.pages) == ("finished", len(web.expected))
        assert "recent" not in read(tmp_path / "c" / "crawl.toml").providers, "a later run takes the change back"
    assert "removes provider 'recent'" in told[3]
    assert (tmp_path / "c" / "state" / "rewired.json").stat().st_mode & 0o077 == 0, "a plan may hold a password"
    adds, removes = "adds provider 'recent'", "removes provider 'recent'"
    assert [adds in told[0], removes in told[1], adds in told[2]] == [True, True, True]
    log = [json.loads(line) for line in (tmp_path / "c" / "logs" / "steering.jsonl").read_text().splitlines()]
    assert [line["do"] for line in log] == ["pause", "rewire", "undo", "rewire", "stop", "undo"]
    assert (log[1]["source"], log[1]["done"]) == ("cache.toml", told[0])


def beside_a_trap(request: FakeRequest) -> str | FakePage:
    """Honest pages that are slow, and a part that has no end and says nothing."""
    _, part, name = request.target.split("/") if request.target.count("/") == 2 else ("", "", "")
    if part == "trap":
        links = (f"/trap/{int(name) * 7919 % 10**9 + step * 10**7}" for step in range(2))
        return "<title>x</title>Nothing." + "".join(f'<a href="{link}">more</a>' for link in links)
    if part == "news":
        text = " ".join(f"{word}{int(name) * 7 + len(word)}" for word in ("one", "second", "third", "fourths", "fif"))
        return FakePage(body=f'<title>{name}</title>{text}<a href="/news/{int(name) + 1}">on</a>', latency=0.005)
    return FakePage(status=404)


@pytest.mark.parametrize("before", ["released", "confirmed"])
def test_a_trap_is_confirmed_and_released_while_the_crawl_runs_and_either_can_be_taken_back(
    tmp_path: Path, before: str
) -> None:
    folder = tmp_path / "c"

    def trap_pages() -> int:
        return sum(target.startswith("/trap/") for target in web.targets())

    def listed() -> ListedFamily:
        families = suspicions_of(folder).families
        assert len(families) == 1, families
        [family] = families
        return family

    def confirm(control: Control) -> None:
        control.do(Decide(confirm=[listed().id]))
        asked = trap_pages() + look(control).in_flight
        more = look(control).fetched + 50
        until(lambda: look(control).fetched >= more)
        assert listed().state == "confirmed"
        assert trap_pages() <= asked

    def release(control: Control) -> None:
        control.do(Decide(release=[listed().id]))
        asked = trap_pages()
        until(lambda: trap_pages() >= asked + 50)
        assert (listed().state, listed().set_aside) == ("released", 0)

    def script(control: Control) -> None:
        until(lambda: any(one.set_aside > 5 for one in suspicions_of(folder).families))
        for step in (release, confirm) if before == "released" else (confirm, release):
            step(control)
        with pytest.raises(RequestRefused, match="nothing is set aside under 'other'"):
            control.do(Decide(confirm=["other"]))
        control.do(Stop())

    with FakeWeb({"/": '<a href="/trap/1">1</a><a href="/news/1">2</a>'}, otherwise=beside_a_trap) as web:
        crawl([web.url("/")], folder, script)
        assert listed().state == ("confirmed" if before == "released" else "released")
        asked = trap_pages()
        crawl([], folder, resume=True, max_pages=standing_at_rest(folder).fetched + 60)
        assert (trap_pages() == asked) is (before == "released")

"""Stories against the server's log: what `gossamer why` says of a URL is what the server saw, whatever came of it."""

import asyncio
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.names import FakeDns, Zone

from gossamer.analysis.traces import Story
from gossamer.analysis.why import story_of
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.outcome import Note

WORDS = " ".join(f"Sentence {number} of a page about rivers and those who cross them." for number in range(80))

#: Where every name leads that has an address; at the others nobody listens.
HERE, NOWHERE = "127.0.0.1", "127.0.0.2"


def links(*targets: str) -> str:
    return "".join(f'<a href="{target}">{target}</a>' for target in targets)


def redirect(target: str, status: int = 302) -> FakePage:
    return FakePage("", status=status, headers=(("Location", target),))


def plain(text: str) -> FakePage:
    return FakePage(text, type="text/plain")


LIKE = links("/copy", "/like") + WORDS

#: Pages by URL; `PORT` stands for that of the server. Those of a.test are linked from its root.
PAGES: dict[str, FakePage | str] = {
    "http://a.test/robots.txt": plain("User-agent: *\nDisallow: /private\n"),
    "http://a.test/original": LIKE,
    "http://a.test/copy": LIKE,
    "http://a.test/like": LIKE.replace("Sentence 40", "Phrase"),
    "http://a.test/document": FakePage(b"%PDF-1.4\n", type="application/pdf"),
    "http://a.test/quiet": '<meta name="robots" content="nofollow">' + links("/behind"),
    "http://a.test/moved": redirect("/new", 301),
    "http://a.test/new": redirect("/newest"),
    "http://a.test/newest": "here",
    "http://a.test/round": redirect("/and"),
    "http://a.test/and": redirect("/round"),
    "http://a.test/self": redirect("/self"),
    "http://a.test/left": redirect("http://outside.example/"),
    "http://a.test/mail": redirect("mailto:somebody@example.org"),
    "http://a.test/gone": FakePage("gone", status=410),
    "http://a.test/forbidden": FakePage("no", status=403),
    "http://a.test/cut": FakePage("x" * 5_000, cut=100),
    "http://a.test/large": "<p>" + "y" * 60_000,
    "http://a.test/empty": "",
    "http://a.test/1": links("/2"),
    "http://a.test/2": links("/3"),
    "http://a.test/3": links("/4"),
    "http://a.test/4": "too deep",
    "http://broken.test/": FakePage("broken", status=500),
    "http://rude.test/": FakePage(raw=b"no protocol at all\r\n\r\n"),
    "http://silent.test/": FakePage(silent=True),
    "http://busy.test/": FakePage("busy", status=503, headers=(("Retry-After", "900"),)),
    "http://unruled.test/robots.txt": FakePage("", status=503),
    "http://never.test/": "unseen",
    "http://small.test/first": links("/second"),
    "http://small.test/second": "one too many",
}

FROM_ROOT = (
    *(url.removeprefix("http://a.test") for url in PAGES if re.match(r"http://a\.test/(?!robots|new|and|[234])", url)),
    *("/lost", "/private/x", "/cgi/x", "/original#part", "mailto:somebody@example.org", "http://127.9.9.9:1/"),
    *(f"http://{host}.test:PORT/" for host in ("broken", "rude", "silent", "busy", "unruled", "never")),
    *(f"http://{host}.test:PORT/" for host in ("dead", "nameless", "unnamed")),
    *("http://busy.test:PORT/other", "http://small.test:PORT/first"),
)

#: Outcomes without a request.
UNSENT = {"robots_denied", "dns_failed", "address_refused"}

#: URL -> state, and what the story says.
STORIES = {
    "http://a.test/": ("done", "ok, status 200"),
    "http://a.test/robots.txt": ("done", "to know the rules of its site"),
    "http://a.test/original": ("done", "ok, status 200"),
    "http://a.test/copy": ("done", "; its document is the same as that of http://a.test/original, byte for byte"),
    "http://a.test/like": ("done", "; its text is nearly the same as that of http://a.test/original"),
    "http://a.test/document": ("done", "ok, status 200"),
    "http://a.test/quiet": ("done", "ok, status 200"),
    "http://a.test/behind": ("refused", "http://a.test/quiet links to it by `a href`, and filter nofollow refuses it"),
    "http://a.test/disowned": ("refused", "http://a.test/ links to it by `a href`, and filter nofollow refuses it"),
    "http://a.test/moved": ("done", "status 301", "; it leads to http://a.test/new, then http://a.test/newest"),
    "http://a.test/new": ("done", "status 302", "; it leads to http://a.test/newest"),
    "http://a.test/newest": ("done", "ok, status 200"),
    "http://a.test/round": (
        "done",
        "; it leads to http://a.test/and, then back to http://a.test/round, which is a loop",
    ),
    "http://a.test/and": ("done", "; it leads to http://a.test/round, then back to http://a.test/and, which is a loop"),
    "http://a.test/self": ("done", "; it leads to itself, which is a loop"),
    "http://a.test/left": ("done", "; it leads to http://outside.example/; the crawl does not follow it: never"),
    "http://outside.example/": (
        "refused",
        "http://a.test/left links to it by `redirect`, and filter constraints refuses it",
    ),
    "http://a.test/mail": ("done", "the crawl does not follow it: scheme:mailto"),
    "http://a.test/gone": ("done", "client_error, status 410"),
    "http://a.test/forbidden": ("done", "client_error, status 403"),
    "http://a.test/lost": ("done", "client_error, status 404"),
    "http://a.test/cut": ("done", "truncated, status 200"),
    "http://a.test/large": ("done", "truncated, status 200"),
    "http://a.test/empty": ("done", "ok, status 200"),
    "http://a.test/1": ("done", "ok, status 200"),
    "http://a.test/2": ("done", "ok, status 200"),
    "http://a.test/3": ("refused", "http://a.test/2 links to it", "at depth 2, and the crawl goes no deeper than 2"),
    "http://a.test/4": ("unknown", "it was not found"),
    "http://a.test/private/x": ("done", "it was not asked for, since robots.txt denies it, line 2 (robots_denied"),
    "http://a.test/cgi/x": (
        "refused",
        "http://a.test/ links to it",
        "filter patterns refuses it at gate follow: exclude",
    ),
    "http://a.test/nowhere": ("unknown", "it was not found: no page that was processed so far links to it"),
    "http://broken.test/": ("later", "it failed 2 times (server_error, status 500", "is tried again", ", not before "),
    "http://rude.test/": ("later", "it failed 2 times (protocol_failed", "is tried again", ", not before "),
    "http://silent.test/": ("later", "it failed 2 times (timed_out", "is tried again", ", not before "),
    "http://busy.test/": (
        "queued",
        "it failed 1 time (server_error, status 503",
        "; the host waits until",
        "asked for a pause",
    ),
    "http://busy.test/other": ("queued", "; the host waits until", "it asked for a pause"),
    "http://unruled.test/": ("queued", "it waits in the queue of its host"),
    "http://never.test/": (
        "refused",
        "http://a.test/ links to it",
        "filter constraints refuses it at gate follow: never",
    ),
    "http://dead.test/": ("queued", "it waits in the queue of its host"),
    "http://nameless.test/": ("done", "it was not asked for, since its host has no address (dns_failed"),
    "http://unnamed.test/": ("queued", "; the host waits until", "its name has no address"),
    "http://127.9.9.9:1/": ("done", "it was not asked for, since its host has an address that links may not reach"),
    "http://small.test/first": ("done", "ok, status 200"),
    "http://small.test/second": (
        "refused",
        "http://small.test/first links to it",
        "the budget of its host or domain was used up",
    ),
}


async def crawl(folder: Path, web: FakeWeb) -> None:
    """Crawl it all until only what is owed for minutes is left."""
    named = ["a", "broken", "rude", "silent", "busy", "unruled", "never", "small"]
    zones: dict[str, Zone | list[str]] = {f"{name}.test": [HERE] for name in named}
    zones |= {"dead.test": [NOWHERE], "unnamed.test": Zone(fails=True)}
    async with FakeDns(zones) as names:
        settings: dict[str, dict[str, object]] = {
            "dns": {"servers": [names.server], "negative_ttl": 0.05},
            "politeness": {"retries": [0.2, 600.0], "delay": 0.0},
            "frontier": {"linger": 1.0},
            "http": {"first_byte": 0.3},
        }
        options = {
            "output": str(folder),
            "scope": "any",
            "depth": 2,
            "near_duplicates": "report",
            "exclude": ["/cgi/"],
            "never": ["test.never", "example.outside"],
            "allow_network": ["127.0.0.0/30"],
            "max_page_size": 20_000,
            "hosts": {"small.test": {"max-pages": 1}},
        }
        seed = f"http://a.test:{web.port}/"
        done = await Crawl([seed], build(all_options(), options), settings=settings).run()
        assert (done.state, done.exit_code) == ("incomplete", 4)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Story], Counter[str]]:
    """The story of each URL, and how often the server was asked for it; URLs without port."""
    folder = tmp_path_factory.mktemp("story") / "c"
    with FakeWeb(PAGES) as web:
        root = links(*FROM_ROOT).replace("PORT", str(web.port))
        web.pages["http://a.test/"] = f'{root}<a rel="nofollow" href="/disowned">x</a>'
        asyncio.run(crawl(folder, web))
        asked = Counter(f"http://{request.host}{request.target}" for request in [*web.requests, *web.errands])
        at = re.compile(rf":{web.port}\b")
        stories = {url: story_of(folder, re.sub(r"(\.test)/", rf"\1:{web.port}/", url)) for url in STORIES}
    plain_asked: Counter[str] = Counter()
    for url, times in asked.items():
        plain_asked[at.sub("", url)] += times
    return {url: msgspec.structs.replace(one, told=at.sub("", one.told)) for url, one in stories.items()}, plain_asked


def test_a_story_says_for_every_kind_of_end_where_the_url_stands_and_why(
    told: tuple[dict[str, Story], Counter[str]],
) -> None:
    stories, _ = told
    assert len(stories) >= 40
    for url, (state, *says) in STORIES.items():
        story = stories[url]
        assert story.state == state, (url, story.told)
        assert all(words in story.told for words in says), (url, story.told)


def test_a_story_claims_exactly_the_requests_that_the_server_has_seen(
    told: tuple[dict[str, Story], Counter[str]],
) -> None:
    stories, asked = told
    for url, story in stories.items():
        failed = re.match(r"it failed (\d+) time", story.told)
        is_asked = story.told.startswith(("it was fetched", "the request for it failed", "it was asked for"))
        sent = [visit for visit in story.visits if visit["outcome"] not in UNSENT]
        again = sum(Note.ASKED_AGAIN in visit.get("notes", ()) for visit in sent)
        claimed = int(failed[1]) if failed else int(is_asked)
        assert claimed + again == asked[url], (url, story.told)
        assert len(sent) + again == asked[url], (url, story.visits)
    assert {url for url in asked if not url.endswith("/robots.txt")} <= set(stories), (
        "a request that no story is asked of"
    )


def test_what_a_limit_left_in_the_queue_and_what_is_out_of_scope_is_told(tmp_path: Path) -> None:
    pages = {
        "/": links("/1", "/2", "http://other.test/"),
        "/1": FakePage("broken", status=500),
        "/2": "two",
        "/3": "three",
    }
    with FakeWeb(pages) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "max_pages": 1, "retries": 0}
        run(Crawl([web.url("/")], build(all_options(), options)))
        story = story_of(tmp_path / "c", web.url("/2"))
        assert (story.state, story.told) == ("queued", "it waits in the queue of its host")
        assert web.url("/2") not in {web.url(target) for target in web.targets()}
        other = story_of(tmp_path / "c", "http://other.test/")
        assert (other.state, other.told.rpartition(" at gate ")[2]) == ("refused", "follow: scope:host")

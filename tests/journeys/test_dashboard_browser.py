"""The dashboard in a real browser: what a person sees and does, and what other sites try. Skipped where there is no Chromium."""

import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.dashboard.crawls import key_of
from gossamer.engine.sheet import build
from gossamer.search.indexing import index_crawl
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_core_python.sync_playwright")

#: The system's browser: none is downloaded.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

#: Milliseconds for what a page is to show: a crawl that a click begins needs seconds on a busy machine.
PATIENCE = 60_000

#: A URL and a title that would like to be scripts, and a page that is tried again much later.
HOSTILE = "/%3Cscript%3Ewindow.pwned=1%3C/script%3E'\"%3Cimg%20src=x%20onerror=window.pwned=1%3E"
PAGES = {
    "/": f'<title><img src=x onerror="window.pwned=1"></title><a href="{HOSTILE}">x</a><a href="/1">x</a>',
    "/1": FakePage(status=500),
}

#: A page whose title, text and name of a thing would like to be elements, and that is found by its words.
WORDS = {
    "/": "<title>&lt;img src=x onerror=window.pwned=1></title><p>🕷 Spiders weave &lt;script>window.pwned=1&lt;/script>"
    '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product", '
    '"name": "<img src=x onerror=window.pwned=1>"}</script>'
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for all tests of this file."""
    with playwright.sync_playwright() as started:
        # As root, as in a container, Chromium has no sandbox.
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page of a browser without a past; nothing that it says on its console may be an error."""
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    opened.errors = []
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.on("console", lambda said: opened.errors.append(said.text) if said.type == "error" else None)
    yield opened
    context.close()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return {**os.environ, "PYTHONUNBUFFERED": "1", **own}


@contextlib.contextmanager
def served(environment: dict[str, str], place: Path) -> Iterator[tuple[str, str]]:
    """The two addresses of a dashboard."""
    line = [sys.executable, "-m", "gossamer", "dashboard", str(place)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def crawling(
    environment: dict[str, str], web: FakeWeb, folder: Path, *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl at work in a process of its own, which waits for a retry."""
    line = [sys.executable, "-m", "gossamer", "crawl", web.url("/"), "-o", str(folder), "--delay", "0", "--json"]
    process = subprocess.Popen([*line, "--linger", "forever", *options], stdout=subprocess.PIPE, env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=HUNG_AFTER)


@pytest.fixture
def rested(tmp_path: Path) -> Path:
    """A crawl at rest, of a site that means harm, in a folder whose name does too."""
    folder = tmp_path / "crawls" / "<img src=x onerror=window.pwned=1>"
    with FakeWeb(PAGES) as web:
        crawl_in_a_thread(web, folder)
    return folder


def crawl_in_a_thread(web: FakeWeb, folder: Path, **more: Any) -> None:
    """Crawl to the end: the driver of the browser has an event loop at work in this thread."""
    job = Crawl([web.url("/")], build(all_options(), {"output": str(folder), "delay": 0, "retries": 0, **more}))
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(job.run())).result()


def serious(page: Any, options: dict[str, Any] | None = None) -> list[str]:
    """What axe finds that hinders people."""
    found = axe.Axe().run(page, options=options)["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")]


#: Elements by which a person acts on a page, or which scroll.
ACTIVE = "a[href], button:not([disabled]), input, select, textarea, summary, [tabindex='0']"

#: Notes the elements that the focus reaches, and whether it can be seen there. A page may be drawn anew meanwhile, so that
#: elements go by their names.
WATCH_FOCUS = """active => {
    const text = one => one.getAttribute("aria-label") || one.textContent;
    const name = one => [one.localName, one.id || one.getAttribute("href") || "", text(one)].join(" ");
    const before = document.activeElement, reached = new Set(), unseen = new Set();
    const note = ({ target }) => {
        reached.add(name(target));
        if (getComputedStyle(target).outlineStyle === "none" && !target.matches(".node")) unseen.add(name(target));
    };
    document.addEventListener("focusin", note);
    window.focusTold = () => {
        document.removeEventListener("focusin", note);
        document.activeElement.blur();
        before.focus();
        const shown = [...document.querySelectorAll(active)].filter(one => one.checkVisibility()).map(name);
        const missed = shown.filter(one => !reached.has(one));
        return [...missed.map(one => `not reached: ${one}`), ...[...unseen].map(one => `not seen: ${one}`)];
    };
    return document.querySelectorAll(active).length;
}"""


def hindrances(page: Any) -> list[str]:
    """What hinders people on this page: in light and dark, on a narrow screen, and by the keyboard alone."""
    usual = page.viewport_size
    found = serious(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 320, "height": 700})
    found += serious(page, {"runOnly": ["color-contrast", "scrollable-region-focusable"]})
    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        found.append("the page is wider than a narrow screen")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(usual)
    # What a crawl at work has drawn while the focus went round is met in the next round.
    return found + (unreached(page) and unreached(page))


def unreached(page: Any) -> list[str]:
    """What the keyboard does not reach, or not visibly, in one round of the page."""
    for _ in range(page.evaluate(WATCH_FOCUS, ACTIVE) + 5):
        page.keyboard.press("Tab")
    told: list[str] = page.evaluate("focusTold()")
    return told


#: The table of a page.
DRAWN = "document.querySelector('main .scroll')"


def term(page: Any, name: str) -> str:
    return str(page.locator(f"dt:text-is('{name}') + dd").first.inner_text())


def test_the_overview_shows_figures_and_problems_to_everybody(
    page: Any, rested: Path, environment: dict[str, str]
) -> None:
    with served(environment, rested) as (full, _):
        page.goto(full)
        page.wait_for_selector("#problems")
        assert "token" not in page.url, "the key does not stay in the address"
        assert page.evaluate("document.cookie") == ""
        assert (term(page, "pages"), term(page, "discovered")) == ("1", "3")
        assert "gone_after_retries" in page.inner_text("main")
        assert hindrances(page) == []
        assert page.errors == []


def test_a_page_of_a_package_is_a_tab_and_all_of_it_is_text(
    page: Any, rested: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    info = tmp_path / "site" / "wild-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wild\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gossamer.subjects]\nwild = wild:SUBJECT\n")
    (tmp_path / "site" / "wild.py").write_text(
        "from gossamer.dashboard.contract import DashboardPage\nfrom gossamer.engine.subjects import Subject\n"
        "SUBJECT = Subject('wild', 'Wild', pages={'A/B <i>': 'wild:page', 'Broken': 'wild:broken'})\n"
        "HARM = '<img src=x onerror=window.pwned=1>'\n"
        "page = lambda crawl: DashboardPage(HARM, f'{HARM}\\n\\nsecond', ['name', 'n'], [[HARM, 3]])\n"
    )
    with served({**environment, "PYTHONPATH": str(info.parent)}, rested) as (_, read):
        page.goto(read)
        page.click("text=A/B <i>")
        page.wait_for_selector("main h2:text-is('<img src=x onerror=window.pwned=1>')")
        assert page.locator("main td").all_inner_texts() == ["<img src=x onerror=window.pwned=1>", "3"]
        assert page.locator("main p").nth(1).inner_text() == "second"
        assert page.get_attribute(".tabs a:text-is('A/B <i>')", "aria-current") == "page"
        assert page.locator("main img").count() == 0 and page.evaluate("window.pwned") is None
        assert hindrances(page) == []
        page.click("text=Broken")
        page.wait_for_selector("main p.trouble:text('cannot be loaded')")
        assert [one for one in page.errors if "400" not in one and "409" not in one] == []


def test_hosts_are_searched_sorted_and_lead_nowhere_else(page: Any, rested: Path, environment: dict[str, str]) -> None:
    with served(environment, rested) as (full, _):
        page.goto(full)
        page.click("text=Hosts")
        page.wait_for_selector("td:text-is('127.0.0.1')")
        assert hindrances(page) == []
        page.select_option("#sort", "4")
        page.fill("#search", "nowhere")
        page.press("#search", "Enter")
        page.wait_for_selector("main p:text-is('None.')")
        assert page.errors == []


def test_a_host_has_a_page_where_a_person_changes_its_delay(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c"):
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (full, read):
            page.goto(full)
            page.click("text=Hosts")
            page.click("#host-127\\.0\\.0\\.1")
            page.wait_for_selector("#failed td:text-is('server error')")
            assert hindrances(page) == []
            page.fill("#set-delay", "soon")
            page.click("#do-delay")
            page.wait_for_selector("p.trouble")
            page.fill("#set-delay", "7")
            page.press("#set-delay", "Enter")
            page.wait_for_selector("dt:text-is('delay') + dd:text-is('7.0 s')")
            assert term(page, "because of") == "the setting"
            at = page.url.partition("#")[2]
            page.goto(read)
            page.goto(read.partition("?")[0] + "#" + at)
            page.wait_for_selector("#queue")
            assert page.locator("main form").count() == 0, "who only reads cannot change it"
            assert page.locator("main img, main script").count() == 0
        assert [one for one in page.errors if "409" not in one] == []


def test_settings_are_edited_checked_and_applied_together(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c"):
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (full, _):
            page.goto(full)
            page.click("text=Settings")
            page.wait_for_selector("main h3")
            assert hindrances(page) == []
            page.fill("#setting", "concurrency")
            page.fill("#value-frontier\\.concurrency", "0")
            page.fill("#setting", "politeness.delay")
            page.fill("#value-politeness\\.delay", "3s")
            page.click("#do-check")
            page.wait_for_selector("p.trouble")
            page.fill("#setting", "frontier.concurrency")
            page.fill("#value-frontier\\.concurrency", "3")
            page.click("#do-apply")
            page.wait_for_selector("main p:text('politeness.delay = 3.0')")
            assert page.input_value("#value-frontier\\.concurrency") == "3"
        assert [one for one in page.errors if "409" not in one] == []


def test_a_crawl_is_started_and_exported_by_forms_and_a_refusal_is_shown(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "crawls").mkdir()
    with FakeWeb(PAGES) as web, served(environment, tmp_path / "crawls") as (full, _):
        page.goto(full)
        page.click("#start-one")
        page.wait_for_selector("#do-start")
        assert hindrances(page) == []
        page.fill("#seeds", web.url("/"))
        page.fill("#option-max_pages", "none at all")
        page.press("#option-max_pages", "Enter")
        page.wait_for_selector("p.trouble:text('max_pages')")
        page.fill("#option-max_pages", "1")
        page.click("summary")
        page.fill("#find-option", "sitemaps")
        page.check("#option-sitemaps")
        page.click("#do-start")
        page.wait_for_selector("#started")
        assert "--max-pages=1 --sitemaps" in page.inner_text("main pre")
        page.click("#started")
        page.wait_for_selector("main strong:text-is('limit')")
        page.click("text=Exports")
        page.wait_for_selector("#do-export")
        page.select_option("#export-to", "urls")
        page.click("#do-export")
        page.wait_for_selector("td a[download]")
        assert hindrances(page) == []
        with page.expect_download() as download:
            page.click("td a[download]")
        assert Path(download.value.path()).read_text() == f"{web.url('/')}\n"
        page.click("button:text-is('Remove')")
        page.wait_for_selector("main p:text('There are no exports yet.')")
        assert [one for one in page.errors if "400" not in one] == []


def test_a_person_sees_two_agents_and_changes_one(page: Any, tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c", "--agents", "2"):
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (full, _):
            page.goto(full)
            page.wait_for_selector("#agents td:text-is('agent-01')")
            assert hindrances(page) == []
            page.click("text=Settings")
            page.wait_for_selector("#agent")
            page.select_option("#unit", "frontier")
            page.wait_for_selector("main h4:text-is('Instances')")
            page.select_option("#agent", "agent-01")
            page.wait_for_selector("th:text-is('changes')")
            while page.input_value("#value-frontier\\.concurrency") != "32":
                page.wait_for_timeout(50)
            page.fill("#value-frontier\\.concurrency", "5")
            page.press("#value-frontier\\.concurrency", "Tab")
            page.click("#do-apply")
            page.wait_for_selector("main p:text('agent-01 alone, until it begins again')")
            page.wait_for_selector("th:text-is('setting concurrency')")
            assert hindrances(page) == []
            page.click("text=Topology")
            page.click("#tell-fetch")
            page.wait_for_selector("#told td:text-is('agent-01')")
            page.click("text=Change the graph")
            page.wait_for_selector("#agent")
            assert serious(page) == []
            page.click("text=Traps")
            page.wait_for_selector("main p:text-is('Nothing is set aside.')")
            assert hindrances(page) == []
        assert page.errors == []


def test_the_graph_is_a_picture_that_is_dragged_searched_and_remembered(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c"):
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (full, _):
            page.goto(full)
            page.click("text=Topology")
            node = page.locator("g.node[data-name=fetch]")
            page.wait_for_selector("#tell-fetch")
            assert page.locator("g.node").count() == page.locator("table").nth(1).locator("tbody tr").count()
            assert hindrances(page) == []
            page.click("#still")
            box = node.locator("circle").bounding_box()
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + 60, y + 40, steps=5)
            page.mouse.up()
            moved = node.locator("circle").bounding_box()
            assert abs(moved["x"] - box["x"] - 60) < 2 and abs(moved["y"] - box["y"] - 40) < 2
            page.fill("#find-unit", "url-seen")
            page.press("#find-unit", "Enter")
            page.wait_for_selector("#told h3:text-is('url-seen')")
            seen = page.locator("g.node[data-name=url-seen]")
            before = seen.get_attribute("transform")
            assert page.evaluate("document.activeElement.dataset.name") == "url-seen"
            page.keyboard.press("ArrowRight")
            assert seen.get_attribute("transform") != before, "a unit is moved by the keyboard too"
            page.click("#keep")
            page.wait_for_selector("main p:text('is kept')")
            places = node.get_attribute("transform"), seen.get_attribute("transform")
            page.reload()
            node.wait_for()
            assert (node.get_attribute("transform"), seen.get_attribute("transform")) == places
            assert page.get_attribute("#still", "aria-pressed") == "true"
        assert page.errors == []


def test_the_graph_is_changed_by_a_form_and_changed_back(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c"):
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (full, _):
            page.goto(full)
            page.click("text=Change the graph")
            page.wait_for_selector("#which option:text-is('frontier')", state="attached")
            page.select_option("#which", "fetch")
            page.fill("#workers", "3")
            page.click("#put")
            page.select_option("#table", "connectors")
            page.select_option("#which", "tasks")
            page.fill("#capacity", "4")
            page.press("#capacity", "Enter")
            page.click("#check")
            page.wait_for_selector("main p:text(\"changes component 'fetch'\")")
            assert "workers = 3" in page.inner_text("#change") and "capacity = 4" in page.inner_text("#change")
            assert hindrances(page) == []
            page.click("#apply")
            page.wait_for_selector("main p:text('Done')")
            page.select_option("#which", "fetch")
            assert page.input_value("#workers") == "3"
            page.click("#undo")
            page.wait_for_selector("main p:text(\"changes connector 'tasks'\")")
            page.select_option("#which", "fetch")
            assert page.input_value("#workers") != "3"
        assert page.errors == []


def test_tables_are_asked_reported_and_drawn_and_questions_are_kept(
    page: Any, rested: Path, environment: dict[str, str]
) -> None:
    with served(environment, rested) as (full, _):
        page.goto(full)
        page.click("text=Tables")
        page.click("#ask-sql")
        page.wait_for_selector("svg.bars rect")
        assert page.locator("td:text-is('client_error')").count() == 1
        page.fill("#sql", "SELECT title, url FROM pages")
        page.click("#ask-sql")
        page.wait_for_selector("td:text('window.pwned')")
        assert page.locator("main img, main script").count() == 0
        page.fill("#sql", "SELECT range AS step, range * range AS square, url FROM range(5), pages")
        page.click("#ask-sql")
        page.wait_for_selector("td:text-is('16')")
        page.select_option("#plot-kind", "line")
        page.select_option("#plot-x", "step")
        page.select_option("#plot-y", "square")
        line = "svg.plot[aria-label='square along step: 16 at the end, 16 at most']"
        page.wait_for_selector(line)
        page.fill("#save-as", "<b>squares</b>")
        page.press("#save-as", "Enter")
        page.wait_for_selector("#report option:text-is('<b>squares</b>')", state="attached")
        assert hindrances(page) == []
        page.select_option("#report", "rerrors")
        page.wait_for_selector("main section h3")
        page.reload()
        page.select_option("#report", "s<b>squares</b>")
        page.wait_for_selector(line)
        page.reload()
        page.wait_for_selector(line), "the address of a saved report shows it"
        page.click("#unsave")
        page.wait_for_selector("main p:text('is forgotten')")
        page.fill("#sql", "SELECT * FROM '/etc/passwd'")
        page.click("#ask-sql")
        page.wait_for_selector("p.trouble")
        page.click("text=SPARQL")
        page.wait_for_selector("main p:text('keeps no triples')")
        assert page.locator("form").count() == 0, "what a crawl cannot answer is not asked"
        assert page.evaluate("window.pwned") is None
        assert [one for one in page.errors if "400" not in one] == []


def test_triples_and_words_of_a_hostile_site_are_asked_and_shown_as_text(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "crawl"
    with FakeWeb(WORDS) as web:
        crawl_in_a_thread(web, folder, rdf=True)
    index_crawl(folder)
    with served(environment, folder) as (_, read):
        page.goto(read)
        page.click("text=Tables and words")
        page.click("text=SPARQL")
        page.fill("#sparql", "SELECT ?name { ?x schema:name ?name }")
        page.click("#ask-sparql")
        page.wait_for_selector("td:text('<img src=x onerror=window.pwned=1>')")
        assert serious(page) == []
        page.fill("#sparql", "CONSTRUCT { ?x schema:name ?name } WHERE { ?x schema:name ?name }")
        page.click("#ask-sparql")
        page.wait_for_selector("main pre:text('onerror=window.pwned=1')")
        assert hindrances(page) == []
        page.click("text=Search")
        page.fill("#words", "weave")
        page.press("#words", "Enter")
        page.wait_for_selector("ol.found mark:text-is('weave')")
        assert page.locator("ol.found").inner_text().startswith("<img src=x onerror=window.pwned=1>")
        assert hindrances(page) == []
        page.click("button.link:text-is('127.0.0.1')")
        page.wait_for_selector("button:text('host: 127.0.0.1')")
        assert page.evaluate("document.activeElement.id") == "words"
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("window.pwned") is None
        assert page.errors == []


def test_a_crawl_at_rest_is_resumed_by_a_click_and_its_log_is_followed(
    page: Any, rested: Path, environment: dict[str, str]
) -> None:
    with served(environment, rested) as (full, _):
        page.goto(full)
        page.click("#do-resume")
        page.wait_for_selector("main p:text-matches('the crawl (goes on|went on)')")
        page.click("text=Log")
        page.wait_for_selector("td:text-is('client error')")
        assert hindrances(page) == []
        link = page.locator("td a").first
        link.focus()
        page.evaluate(
            "import('/static/dom.js').then(dom => dom.replace(DRAWN, DRAWN.cloneNode(true)))".replace("DRAWN", DRAWN)
        )
        assert page.evaluate("document.activeElement.href") == link.evaluate("one => one.href"), (
            "what is drawn anew keeps the focus"
        )
        page.fill("#in-log", "no such thing")
        page.wait_for_selector("td", state="detached")
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("window.pwned") is None
        assert page.errors == []


def test_what_a_site_or_a_folder_is_called_does_nothing_anywhere(
    page: Any, rested: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "given").mkdir()
    with served(environment, tmp_path / "given") as (full, _):
        page.goto(full)
        for name, place in (("<b>here</b>", str(rested.parent)), ("there", "http://127.0.0.1:9/?token=x")):
            page.fill("#site-name", name)
            page.fill("#site-place", place)
            page.press("#site-place", "Enter")
            page.wait_for_selector(f"main p:text('{name} is in the list.')")
        page.wait_for_selector("td:text-is('<b>here</b>')")
        key = key_of(rested)
        page.wait_for_selector(f"[id='to-{key}']")
        assert page.get_attribute("a:text-is('http://127.0.0.1:9/')", "href") == "/api/sites/open?name=there"
        assert hindrances(page) == []
        page.fill("#site-name", "bad")
        page.fill("#site-place", "javascript:window.pwned=1")
        page.click("#keep-site")
        page.wait_for_selector("p.trouble")
        page.click("button[aria-label='Remove there']")
        page.wait_for_selector("main p:text('there is no longer in the list.')")
        assert rested.name in page.inner_text("main")
        url = re.sub("^", "http://127.0.0.1:9", HOSTILE)
        page.goto(full.partition("?")[0] + f"#/{key}/why/<img src=x onerror=window.pwned=1>{url}")
        page.wait_for_selector("#url")
        page.fill("#url", url)
        page.press("#url", "Enter")
        page.wait_for_selector("main h3, main .trouble")
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main script").count() == 0


def test_an_archived_page_is_shown_as_text_and_runs_nothing(
    page: Any, rested: Path, environment: dict[str, str]
) -> None:
    with served(environment, rested.parent) as (_, read):
        page.goto(read)
        page.wait_for_selector("#problems, table")
        [url] = [one for one in archived_urls(rested) if one.endswith("/")]
        page.goto(read.partition("?")[0] + f"#/{key_of(rested)}/why/{quote(url, safe='')}")
        page.wait_for_selector("ol.timeline li:has-text('ok, status 200')")
        assert page.locator("ol.timeline li").first.inner_text().endswith("filters let it pass")
        page.focus("#archived")
        page.keyboard.press("Enter")
        page.wait_for_selector("#view-source")
        page.focus("#view-source")
        page.keyboard.press("Enter")
        assert '<title><img src=x onerror="window.pwned=1"></title>' in page.inner_text("pre")
        assert page.evaluate("document.activeElement.id") == "view-source"
        assert hindrances(page) == []
        page.click("#view-head")
        assert page.inner_text("pre").startswith("HTTP/1.1 200")
        page.click("#view-record")
        assert term(page, "warc-target-uri") == url
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main script").count() == 0
        assert page.errors == []


#: One red pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)

#: A page that tries what a page can to act or to reach out when it is looked at again, and one picture that is its own.
REPLAYED = {
    "/": """<html lang="en"><meta http-equiv="refresh" content="0; url=/beacon?refresh"><link rel="stylesheet" href="/s.css">
<link rel="preconnect" href="/beacon?preconnect"><script>window.pwned = 1; fetch("/api/crawls")</script>
<title>pwned</title><h1 onclick="window.pwned=1" style="background: url(/beacon?style)">A page of before</h1>
<img id="own" alt="red" src="/p.png" width="200" height="100"><img src="x" onerror="window.pwned=1"><img src="/beacon?lost">
<svg><image href="/beacon?svg"/><script>window.pwned=1</script></svg><video src="/beacon?video" autoplay></video>
<iframe src="/api/crawls"></iframe><object data="/beacon?object"></object><embed src="/beacon?embed">
<form action="/beacon?form"><button id="send">send</button></form>
<a id="next" href="/next" target="_blank" ping="/beacon?ping">next</a><a id="out" href="http://elsewhere.test/">out</a>""",
    "/next": "<h1>The next page</h1>",
    "/s.css": FakePage("h1 { color: rgb(0, 128, 0) } @import '/beacon?import';", type="text/css"),
    "/p.png": FakePage(PIXEL, type="image/png"),
}


def becomes(replay: Any, expression: str, expected: object) -> None:
    """Wait for a value in a page without scripts, in which the driver's own waiting does nothing."""
    for _ in range(PATIENCE // 100):
        if replay.evaluate(expression) == expected:
            return
        replay.wait_for_timeout(100)
    assert replay.evaluate(expression) == expected


def test_a_hostile_page_is_replayed_from_the_archive_and_does_nothing(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "crawl"
    with FakeWeb(REPLAYED) as web:
        crawl_in_a_thread(web, folder, page_requisites=True)
        with served(environment, folder) as (_, read):
            fetched = len(web.requests)
            own = read.partition("?")[0]
            page.goto(read)
            page.wait_for_selector("#problems")
            page.goto(own + f"#/{key_of(folder)}/why/{quote(web.url('/'), safe='')}")
            page.click("#archived")
            asked: list[str] = []
            page.context.on("request", lambda request: asked.append(request.url))
            with page.context.expect_page() as opened:
                page.click("#replay")
            replay = opened.value
            becomes(replay, "document.querySelector('#own')?.naturalWidth", 1)
            becomes(replay, "getComputedStyle(document.querySelector('h1')).color", "rgb(0, 128, 0)")
            assert replay.evaluate("window.origin") == "null"
            replay.click("#send")
            replay.click("h1")
            assert replay.evaluate("window.pwned") is None
            replay.click("#next")
            becomes(replay, "document.querySelector('h1')?.innerText", "The next page")
            replay.go_back()
            replay.click("#out")
            becomes(replay, "document.body.innerText.startsWith('http://elsewhere.test/ is not in the archive')", True)
            assert [url for url in asked if not url.startswith((own + "replay?", own + "api/crawls/"))] == []
            assert len(web.requests) == fetched, "nothing was asked of the web"


def archived_urls(folder: Path) -> list[str]:
    return [json.loads(line.split(b" ", 2)[2])["url"] for line in (folder / "index.cdxj").read_bytes().splitlines()]


def test_a_person_steers_by_the_keyboard_alone_and_sees_it(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c"):
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (full, _):
            page.goto(full)
            page.wait_for_selector("#do-pause")
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.className") == "skip"
            for _ in range(20):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement.id") == "do-pause":
                    break
            page.keyboard.press("Enter")
            page.wait_for_selector("#do-continue")
            assert "paused" in page.inner_text("#problems")
            assert hindrances(page) == []
        assert page.errors == []


def test_who_only_reads_has_no_buttons_and_sees_a_crawl_die(
    page: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c") as crawl:
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (_, read):
            page.goto(read)
            page.wait_for_selector("#problems")
            assert page.locator(".actions button").count() == 0
            page.click("text=Units")
            page.fill("#unit", "frontier")
            page.wait_for_selector("td:text-is('frontier')")
            assert page.locator("td:text-is('politeness')").count() == 0
            assert hindrances(page) == []
            page.click("text=Overview")
            page.wait_for_selector("#problems")
            crawl.kill()
            page.wait_for_selector("main strong:text-is('killed')")
            assert "gossamer resume" in page.inner_text("#problems")
        assert page.errors == []


#: A page of another site that tries all that a page can, with the cookie of the dashboard in the browser.
ATTACK = """<title>attack</title><script>
const at = "ADDRESS", order = {method: "POST", credentials: "include", body: "{}"};
const attempts = [
  fetch(at + "/api/crawls", {credentials: "include"}).then(a => a.text()),
  fetch(at + "/api/crawls/KEY/pause", {...order, headers: {"Content-Type": "application/json"}}).then(a => a.text()),
  fetch(at + "/api/crawls/KEY/pause", {...order, mode: "no-cors"}).then(a => a.text()),
];
Promise.allSettled(attempts).then(all => { window.found = all.map(one => one.value ?? ""); });
</script><iframe src="ADDRESS/"></iframe><img src="ADDRESS/api/crawls">
<form method="post" action="ADDRESS/api/crawls/KEY/pause" enctype="text/plain" target="frame">
<input name='{"a":"' value='"}'></form>
<iframe name="frame"></iframe><script>document.forms[0].submit()</script>"""


def test_another_site_reads_nothing_and_changes_nothing(page: Any, tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c"):
        while not (tmp_path / "c" / "crawl.toml").exists():
            page.wait_for_timeout(50)
        with served(environment, tmp_path / "c") as (full, _):
            page.goto(full)
            page.wait_for_selector("#do-pause")
            address = full.partition("/?")[0]
            text = ATTACK.replace("ADDRESS", address).replace("KEY", key_of(tmp_path / "c"))
            with FakeWeb({"/": text}) as other:
                page.goto(other.url("/").replace("127.0.0.1", "localhost"))
                page.wait_for_function("window.found")
                assert page.evaluate("window.found") == ["", "", ""]
                page.goto(other.url("/"))  # the same host at another port: the same site, and another origin
                page.wait_for_function("window.found")
                assert page.evaluate("window.found") == ["", "", ""]
            page.goto(address)
            page.wait_for_selector("main strong:text-is('running')")

"""Packages of plug-ins install beside Gossamer, stay short, change no file of it, and do what they say on a small web.

They are installed as a wheel would be: modules and the entry points of their pyproject.toml in a folder of their own, so
that no network is needed.
"""

import hashlib
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

EXAMPLES = Path(__file__).parents[2] / "examples"

PACKAGES = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))

#: Lines of a whole package, README apart (row M12).
MOST_LINES = 360

Command = Callable[..., str]


def install(folder: Path, target: Path) -> None:
    """Put a package of one module where Python finds it."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    target.mkdir(exist_ok=True)
    for module in folder.glob("*.py"):
        shutil.copy(module, target)
    name = project["name"].replace("-", "_")
    info = target / f"{name}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project.get("entry-points", {})
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in table.items()) for group, table in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Command:
    """Runs a module with this test's package installed, in a folder of its own; what it printed."""
    install(EXAMPLES / request.param, tmp_path / "installed")
    paths = [str(tmp_path / "installed"), *sys.path]

    def command(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        line = [sys.executable, "-W", "error", "-m", *arguments]
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=HUNG_AFTER, cwd=tmp_path, env=environment, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    return command


def crawl(run: Command, web: FakeWeb, *options: str) -> str:
    seeds = [web.url(web.root)] if web.root else []
    return run("gossamer", "crawl", *seeds, "--quiet", "--delay", "0", "--resolve", web.resolve, *options)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_short(package: str) -> None:
    files = [path for path in (EXAMPLES / package).rglob("*") if path.suffix in {".py", ".toml", ".sql", ".css"}]
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    assert lines <= MOST_LINES


@pytest.mark.parametrize("run", ["05-random-walker"], indirect=True)
def test_a_random_walker_goes_from_link_to_link(run: Command, tmp_path: Path) -> None:
    links = {"/": ["/a", "/b"], "/a": ["/hub"], "/b": ["/hub", "/b"], "/hub": ["/a", "/end"], "/end": []}
    with FakeWeb.graph(links) as web:
        (tmp_path / "walk.toml").write_text(run("random_walker", "wiring"))
        crawl(run, web, "--wiring", "walk.toml", "--set", "seeds.steps=200", "-o", "crawl")
        steps = web.targets()
    assert len(steps) == 200 and steps[0] == "/"
    for before, after in itertools.pairwise(steps):
        assert after in links[before] or after == "/", f"from {before} no link leads to {after}"
    assert {after for before, after in itertools.pairwise(steps) if before == "/end"} == {"/"}
    jumps = sum(before == "/hub" and after == "/" for before, after in itertools.pairwise(steps))
    assert 0 < jumps < steps.count("/hub") / 2
    told = run("random_walker", "report", "walk.json")
    assert told.startswith("200 steps, 5 pages, 1 hosts")
    shares = {url: float(share) for share, url in re.findall(r"([\d.]+)% http://[^/]*(/\S*)", told)}
    assert shares == pytest.approx({path: steps.count(path) / 2 for path in links})


@pytest.mark.parametrize("run", ["05-random-walker"], indirect=True)
def test_walks_from_one_seed_all_walk(run: Command, tmp_path: Path) -> None:
    with FakeWeb.graph({"/": ["/a"], "/a": ["/"]}) as web:
        (tmp_path / "walk.toml").write_text(run("random_walker", "wiring"))
        crawl(run, web, "--wiring", "walk.toml", "--set", "seeds.walkers=5", "--set", "seeds.steps=40", "-o", "crawl")
        steps = web.targets()
    assert len(steps) == 40
    assert steps[:5] == ["/"] * 5


@pytest.mark.parametrize("run", ["06-web-statistics"], indirect=True)
def test_statistics_of_two_crawls_are_exact(run: Command, tmp_path: Path) -> None:
    first: dict[str, FakePage | str] = {
        "http://a.example/": '<a href="http://b.example/">x</a><a href="http://c.test/">x</a><a href="/x">x</a>',
        "http://a.example/x": '<a href="/image">x</a><a href="/gone">x</a><a href="/missing">x</a>',
        "http://a.example/image": FakePage(b"p" * 3000, type="image/png"),
        "http://a.example/gone": "here today",
        "http://b.example/": "one",
        "http://c.test/": FakePage("not for you", status=403),
    }
    second = {**first, "http://a.example/gone": FakePage("", status=410), "http://b.example/": '<a href="/born">x</a>'}
    second["http://b.example/born"] = "new"
    (tmp_path / "statistics.toml").write_text(run("web_statistics", "wiring"))
    options = ["--wiring", "statistics.toml", "--allow-network", "127.0.0.0/8", "--scope", "any"]
    for name, pages in (("old", first), ("new", second)):
        with FakeWeb(pages, root="http://a.example/") as web:
            crawl(run, web, *options, "--set", f"statistics.output={name}.sqlite", "-o", name)
    told = run("web_statistics", "report", "new.sqlite", "old.sqlite", "--plots", "plots")
    rows = {name: value for value, name in re.findall(r"^ *([\d,.]+)(?: +[\d.]+%)?  (.+)$", told, re.MULTILINE)}
    assert (rows["200"], rows["404"], rows["410"], rows["403"]) == ("5", "1", "1", "1")
    assert (rows["text/html"], rows["image/png"], rows["< 4,096 bytes"]) == ("4", "1", "1")
    assert (rows["example"], rows["test"]) == ("2", "1")
    assert (rows["pages asked for again"], rows["changed"], rows["gone"], rows["new"]) == ("5", "1", "1", "1")
    assert "8 fetched, 8 known" in told
    urls = run("web_statistics", "urls", "old.sqlite").split()
    assert sorted(urls) == sorted(url for url in first if url != "http://c.test/")
    plots = {path.name: path.read_text() for path in (tmp_path / "plots").iterdir()}
    assert "text/html" in plots["media-types.svg"] and "<polyline" in plots["growth.svg"] and len(plots) == 6


def png(width: int, height: int, text: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (height * (width + 1)))
    chunks = chunk(b"IHDR", header) + chunk(b"tEXt", text) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def items(crawl: Path) -> list[tuple[str, str, dict[str, object]]]:
    """Kind, URL and data of every item of a crawl, from its log."""
    rows = map(json.loads, (crawl / "logs" / "crawl.jsonl").read_text("utf-8").splitlines())
    return sorted((row["kind"], row["url"], row["data"]) for row in rows if row["event"] == "item")


@pytest.mark.parametrize("run", ["07-png-collector"], indirect=True)
def test_png_images_are_collected_from_anywhere_each_once(run: Command, tmp_path: Path) -> None:
    big, small, dot = png(40, 30), png(3, 5), png(1, 1)
    pages = {
        "http://a.example/": '<img src="/big.png"><img src="http://cdn.test/small"><img src="/photo.jpg">'
        '<img src="/cut.png"><img src="/dot.png"><a href="/more">x</a><a href="http://cdn.test/page">x</a>',
        "http://a.example/more": '<picture><source srcset="/again.png 2x, /other.png"></picture><img src="/big.png">',
        "http://a.example/big.png": FakePage(big, type="image/png"),
        "http://a.example/again.png": FakePage(big, type="image/png"),
        "http://a.example/cut.png": FakePage(big[:-9], type="image/png"),
        "http://a.example/dot.png": FakePage(dot, type="image/png"),
        "http://a.example/photo.jpg": FakePage(b"jpeg", type="image/jpeg"),
        "http://cdn.test/small": FakePage(small, type="image/png"),
        "http://cdn.test/page": "out of scope",
    }
    (tmp_path / "png.toml").write_text(run("png_collector", "wiring"))
    with FakeWeb(pages, root="http://a.example/") as web:
        crawl(run, web, "--wiring", "png.toml", "--allow-network", "127.0.0.0/8", "--no-warc", "-o", "crawl")
        assert sorted(web.targets()) == ["/", "/again.png", "/big.png", "/cut.png", "/dot.png", "/more", "/small"]
    kept = {path.name: path.read_bytes() for path in (tmp_path / "png").iterdir()}
    assert kept == {f"{hashlib.sha256(data).hexdigest()}.png": data for data in (big, small)}
    told = {url.rpartition("/")[2]: data for _, url, data in items(tmp_path / "crawl")}
    assert told["cut.png"] == {"damaged": "cut off"}
    assert (told["big.png"]["width"], told["big.png"]["height"]) == (40, 30)
    assert told["again.png"] == told["big.png"] and (told["small"]["width"], len(told)) == (3, 4)


WORK = (
    "It was the spider who taught the weaver, and the weaver who forgot; so every web since then has been drawn in the air "
    "at night, taken down before the morning, and drawn again by somebody who never saw the first."
)


@pytest.mark.parametrize("run", ["08-web-monitor"], indirect=True)
def test_pages_that_use_works_or_marks_are_reported(run: Command, tmp_path: Path) -> None:
    words = WORK.split()
    quoted = " ".join(words[5:29]).upper().replace(" ", "</b>\n <i> </i><b>")
    pages: dict[str, str | FakePage] = {
        "/": f'<title>{WORK}</title><script>"{WORK}"</script><a href="/whole">x</a><a href="/quote">x</a><a href="/few">x</a>'
        '<a href="/mark">x</a><a href="/text">x</a>',
        "/whole": f"<p>We found this: {WORK} And this.",
        "/quote": f"<p>Somebody says <b>{quoted}</b>, they say.",
        "/few": f"<p>{' '.join(words[:12])} and nothing else",
        "/mark": "<p>Our ACME   rocket is better than an AcmeRocket. Acme-Rocket!",
        "/text": FakePage(WORK, type="text/plain"),
    }
    (tmp_path / "works").mkdir()
    (tmp_path / "works" / "weaver.txt").write_text(WORK)
    (tmp_path / "works" / "other.txt").write_text(
        "Nothing that stands anywhere else in the whole wide world of webs, they say."
    )
    (tmp_path / "marks.txt").write_text("Acme\nAcme Rocket\n")
    (tmp_path / "monitor.toml").write_text(run("web_monitor", "wiring"))
    with FakeWeb(pages) as web:
        settings = ["--set", "monitor.works=works", "--set", "monitor.marks=marks.txt"]
        crawl(run, web, "--wiring", "monitor.toml", *settings, "-o", "crawl")
    told = {(kind, "/" + url.rpartition("/")[2]): data for kind, url, data in items(tmp_path / "crawl")}
    assert sorted(told) == [("mark", "/mark"), ("work", "/quote"), ("work", "/text"), ("work", "/whole")]
    assert (told["work", "/whole"]["share"], told["work", "/whole"]["words"]) == (1.0, len(words))
    assert told["work", "/text"]["text"] == WORK[:160]
    assert told["work", "/quote"]["words"] == 24
    assert told["work", "/quote"]["share"] == pytest.approx(17 / (len(words) - 7), abs=1e-4)
    assert (told["mark", "/mark"]["mark"], told["mark", "/mark"]["times"]) == ("acme rocket", 2)
    lines = run("web_monitor", "report", "crawl").splitlines()
    assert lines[0] == "3 uses of works, 1 of marks"
    assert "100% of weaver.txt" in lines[2]


@pytest.mark.parametrize("run", ["14-element-monitor"], indirect=True)
def test_a_change_of_one_element_is_told_and_what_changes_beside_it_is_not(run: Command, tmp_path: Path) -> None:
    (tmp_path / "monitor.toml").write_text(run("element_monitor", "wiring"))
    visits = itertools.count()
    prices = ["£1,250.00"]

    def shop(request: FakeRequest) -> str:
        return f'<p>visitor {next(visits)}</p><b class="price"> {prices[-1]} </b><b class="price">£7</b><a href="/about">a</a>'

    with FakeWeb({"/": shop, "/about": lambda request: f"<p>no price here, {next(visits)}"}) as web:
        watched = ["--recrawl", "every=0.1s", "--min-interval", "0.1s", "--linger", "0s", "-o", "crawl"]
        crawl(run, web, "--wiring", "monitor.toml", "--set", "element.select=.price", *watched)
        for price in ("£1,250.00", "£1,000.00\x1b[31m"):
            prices.append(price)
            run("gossamer", "resume", "crawl", "--quiet", "--linger", "0s")
        address = web.url("/")
    assert next(visits) >= 6, "each page was visited by each run"
    [told] = run("element_monitor", "report", "crawl").splitlines()
    assert told[21:] == f"{address}  '£1,250.00' -> '£1,000.00\\x1b[31m'  -20.0%"


@pytest.mark.parametrize("run", ["09-topic-classifier"], indirect=True)
def test_a_classifier_of_ones_own_leads_the_crawl(run: Command, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is the example's own dependency")
    topics = {"relevant": "glacier moraine crevasse icefall serac", "others": "stock market shares bonds broker"}
    for folder, words in topics.items():
        (tmp_path / folder).mkdir()
        for number in range(4):
            (tmp_path / folder / f"{number}.txt").write_text(f"{words} of the and number {number}")
    prose = "<p>{}</p>".format
    links = "".join(f'<a href="/{kind}-{n}">{kind} {n}</a>' for n in range(6) for kind in ("shares", "glacier"))
    pages = {"/": FakePage(prose(topics["relevant"]) + links)}
    pages |= {f"/glacier-{n}": FakePage(prose(topics["relevant"] + f" {n}")) for n in range(6)}
    pages |= {f"/shares-{n}": FakePage(prose(topics["others"] + f" {n}")) for n in range(6)}
    with FakeWeb(pages) as web:
        crawl(run, web, "--relevance", "topic-classifier", "--concurrency", "1", "-o", "crawl")
        order = web.targets()
    assert sorted(order[1:7]) == [f"/glacier-{n}" for n in range(6)]
    assert "harvest:  54% (7 of 13 pages relevant)" in run("gossamer", "status", "crawl")


@pytest.mark.parametrize("run", ["11-thumbnails"], indirect=True)
def test_thumbnails_are_made_in_another_process_and_broken_pictures_are_counted(run: Command, tmp_path: Path) -> None:
    large, small = png(400, 300), png(20, 30)
    pages = {
        "/": '<img src="/large.png"><img src="/small.png"><img src="/again.png"><img src="/cut.png">',
        "/large.png": FakePage(large, type="image/png"),
        "/again.png": FakePage(large, type="image/png"),
        "/small.png": FakePage(small, type="image/png"),
        "/cut.png": FakePage(large[:60], type="image/png"),
    }
    (tmp_path / "thumbnails.toml").write_text(run("thumbnails", "wiring"))
    with FakeWeb(pages) as web:
        options = ["--page-requisites", "--set", "thumbnails.output=small", "--set", "thumbnails.size=100"]
        crawl(run, web, "--wiring", "thumbnails.toml", *options, "-o", "crawl")
    made = {path.stem: struct.unpack_from(">II", path.read_bytes(), 16) for path in (tmp_path / "small").iterdir()}
    names = {name: hashlib.sha256(data).hexdigest() for name, data in (("large", large), ("small", small))}
    assert made == {names["large"]: (100, 75), names["small"]: (20, 30)}
    assert not list((tmp_path / "crawl" / "logs").glob("skipped*")), "a broken picture is counted, and no failure"

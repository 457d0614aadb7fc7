"""A package of somebody else's adds a table, a column, a keeper with state, a follower, a rule of politeness and a control command.

No file of the project knows of it: it is named by entry points and in a wiring. The crawl that uses it is killed at every point
of a commit, and the package gets its column in the middle of that.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from gossamer.crawls.compiling import shipped
from gossamer.engine.wiring import changed, to_toml
from gossamer.storage.contract import Space
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")

ENTRY_POINTS = """
[gossamer.tables]
moods = moods:MOODS
[gossamer.providers]
moods = moods:MoodKeeper
quiet-politeness = moods:QuietPoliteness
[gossamer.control]
wake = moods:Wake
[gossamer.followers]
moods = moods:MoodFollower
"""

PACKAGE = '''
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.crawls.control.wire import ControlRequest, Done
from gossamer.storage.tables.contract import FeedMark
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.contract import Space
from gossamer.storage.tables.contract import Table, column
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.engine.files import LastWrites
from gossamer.storage.tables.log import TableLog, TableLogSheet


class MoodRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    url: Annotated[str, column("The page's URL.", lambda told: told.task.url)]
    visit: Annotated[str, column("The visit.", lambda told: told.visit.id)] = ""
    mood: Annotated[str, column("Its mood.", lambda told: told.visit.title[:4])] = ""
    #COLUMN


MOODS = Table("moods", MoodRow, "The mood of each page.")


class MoodSheet(Sheet, frozen=True):
    directory: Annotated[str, setting("The crawl directory.")] = "."


class MoodKeeper(Provider[MoodSheet]):
    """Counts the pages of each host, and lets the follower run beside the crawl."""

    ledger: Uses[Ledger]
    space = Space("example-moods")

    async def start(self):
        self.ledger.spaces.open(self.space)
        folder = Path(self.sheet.directory, "state", "followers")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "moods").touch()

    def stage(self, records, group):
        for one in records:
            if one.visit.is_page:
                host, known = one.visit.task.host, group.get(self.space, one.visit.task.host, b"pages")
                group.put(self.space, host, b"pages", b"%d" % (int(known or 0) + 1))

    def committed(self, ends):
        pass

    def take_back(self):
        pass

    def ends(self):
        return {}

    def files(self):
        return ()


class Followed(msgspec.Struct):
    mark: FeedMark = FeedMark()
    urls: list[str] = []


class MoodFollower:
    """Keeps the URLs of all rows, with its mark, in one file."""

    table = "moods"
    columns = ()
    rows_at_once = 100

    def __init__(self, directory):
        self.path = directory / "moods.json"
        self.kept = msgspec.json.decode(self.path.read_bytes(), type=Followed) if self.path.exists() else Followed()

    def mark(self):
        return self.kept.mark

    def rebuild(self, generation):
        self.keep(Followed(FeedMark(generation)))

    def take(self, batch):
        url = batch.columns.index("url")
        self.keep(Followed(batch.mark, [*self.kept.urls, *(row[url] for row in batch.rows)]))

    def keep(self, kept):
        fresh = self.path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(kept))
        fresh.replace(self.path)
        self.kept = kept


class QuietSheet(PolitenessSheet, frozen=True):
    quiet: Annotated[tuple[str, ...], setting("Leave pages with such an end alone.")] = ()


class QuietPoliteness(HostPoliteness):
    """Some pages sleep, and are left alone until somebody wakes them."""

    sheet_type = QuietSheet

    def closed(self, task, now):
        return max(super().closed(task, now), 0.3 if task.url.endswith(self.sheet.quiet) else 0.0)


class Wake(ControlRequest, frozen=True, tag="wake"):
    end: str

    async def act(self, crawl):
        [unit] = crawl.providers(QuietPoliteness)
        left = [end for end in unit.sheet.quiet if end != self.end]
        await crawl.set(unit.name, {"quiet": left})
        return Done(f"pages that end with {self.end} are awake")
'''

COLUMN = 'letters: Annotated[int, column("Letters of its title.", lambda told: len(told.visit.title))] = 0'

#: What the wiring of the crawl says of it.
CHANGE = """
[providers.politeness]
use = "quiet-politeness"
settings = { quiet = ["/3/3"] }
[providers.moods]
use = "moods"
providers = { ledger = "ledger" }
settings = { directory = "DIRECTORY" }
[providers.log.settings]
tables = ["pages", "links", "items", "moods"]
[components.commit.providers]
keepers = { visits = ["log", "moods"] }
"""

#: Where the crawl is killed, one after the other: there are two keepers and the archive in each group.
POINTS = tuple(
    f"{name}:{number}" for number in (4, 5, 9) for name in ("archive-written", "before-commit", "after-commit")
)


def install(folder: Path, column: str = "pass") -> None:
    """Install the package; `column` is one that it adds to its table."""
    info = folder / "moods-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moods\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "moods.py").write_text(PACKAGE.replace("#COLUMN", "" if column == "pass" else column))


def gossamer(environment: Mapping[str, str], *arguments: str, status: int = 0) -> str:
    command = [sys.executable, "-m", "gossamer", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HUNG_AFTER)
    assert done.returncode == status, f"{arguments}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.long)])
def test_a_package_of_somebody_elses_adds_all_of_it_and_survives_kills(kills: int, tmp_path: Path) -> None:
    site, crawl, wiring = tmp_path / "site", tmp_path / "crawl", tmp_path / "own.toml"
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{site}"}
    install(site)
    wiring.write_text(to_toml(changed(shipped("default"), CHANGE.replace("DIRECTORY", str(crawl)))))
    options = ["--wiring", str(wiring), "--delay", "0", "--per-host", "2", "--concurrency", "4", "-o", str(crawl)]
    with FakeWeb.tree(4, 4, latency=0.001) as web:
        for number in range(kills):
            begun = (crawl / "crawl.toml").exists()
            if number == (kills + 1) // 2:
                install(site, COLUMN)
            point = POINTS[number % len(POINTS)]
            what = ["resume", str(crawl)] if begun else ["crawl", web.url("/"), *options]
            gossamer({**environment, "GOSSAMER_CRASH": point}, *what, status=-9)
        command = [sys.executable, "-m", "gossamer", "resume", str(crawl), "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        asleep = {url for url in web.expected if url.endswith("/3/3")}
        awake = len(web.expected) - len(asleep) - below(web, asleep)
        deadline = time.monotonic() + 120
        while len(set(map(web.url, web.targets()))) < awake:
            assert process.poll() is None
            if time.monotonic() > deadline:
                state = gossamer(environment, "status", str(crawl))
                missing = sorted(web.expected - asleep - set(map(web.url, web.targets())))[:20]
                process.kill()
                pytest.fail(f"the crawl does not go on; {missing} were not asked for; {state}")
            time.sleep(0.01)  # refusals bring requests of their own, so that no number of them says it
        assert not asleep & set(map(web.url, web.targets())), "a rule of the package's leaves them alone"
        assert "awake" in gossamer(environment, "ask", str(crawl), "wake", "end=/3/3")
        out, err = process.communicate(timeout=HUNG_AFTER)
        assert process.returncode == 0, err
        wanted = set(web.expected)
    summary = json.loads(out)
    assert (summary["state"], summary["pages"]) == ("finished", len(wanted))
    rows = gossamer(environment, "query", str(crawl), "SELECT url, mood, letters FROM moods", "--format", "jsonl")
    found = [json.loads(line) for line in rows.splitlines()]
    assert {row["url"] for row in found} >= wanted
    pages = [row for row in found if row["url"] in wanted]
    assert len(pages) == len(wanted), "a row was lost, or is there twice"
    assert {bool(row["letters"]) for row in pages} == {False, True}, "a column that came later"
    followed = json.loads((crawl / "moods.json").read_text())["urls"]
    assert sorted(followed) == sorted(row["url"] for row in found), "what follows the crawl has each row once"
    with (ledger := RocksLedger(LedgerSheet(directory=str(crawl)))).looking():
        space = Space("example-moods")
        ledger.spaces.open(space)
        assert ledger.spaces.get(space, "127.0.0.1", b"pages") == b"%d" % len(wanted)
    gossamer(environment, "verify", str(crawl))


def below(web: FakeWeb, pages: set[str]) -> int:
    """How many pages lie below these, which are not found before."""
    return sum(any(url.startswith(f"{page}/") for page in pages) for url in web.expected)


def test_a_request_that_nobody_offers_is_refused_in_a_line(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", "ask", str(tmp_path), "sing"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 2
    assert "no installed package offers a request 'sing'" in done.stderr

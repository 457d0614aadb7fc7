"""A keeper of somebody else's takes part in a crawl that is killed at every point of a commit: it loses and doubles nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.storage.contract import Space
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.fakeweb import FakeWeb

#: The keeper and the program that crawls with it, as a user would write them.
PROGRAM = """
import json, sys
from pathlib import Path

import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.contract import Space
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import build
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ProviderPlan, with_settings
from gossamer.engine.sheet import Sheet
from gossamer.engine.files import AppendFile, LastWrites


class PlaceSheet(Sheet, frozen=True):
    directory: str = "."


class Titles(Provider[PlaceSheet]):
    ledger: Uses[Ledger]
    space = Space("example-titles")

    async def start(self):
        self.ledger.spaces.open(self.space)
        self.file, self.last, self.written = None, LastWrites(), False

    async def stop(self):
        if self.file is not None:
            self.file.close()

    def stage(self, records, group):
        self.last.begin()
        lines = [json.dumps([one.visit.url, one.visit.title]) for one in records if one.visit.is_page]
        if not lines:
            return
        if self.file is None:
            self.file = AppendFile(Path(self.sheet.directory, "titles.jsonl"), fresh=False)
        self.last.about_to(self.file)
        self.file.append("".join(line + "\\n" for line in lines).encode())
        self.written = True
        for one in records:
            if one.visit.is_page:
                host, seen = one.visit.task.host, group.get(self.space, one.visit.task.host, b"pages")
                group.put(self.space, host, b"pages", b"%d" % (int(seen or 0) + 1))

    def committed(self, ends):
        pass

    def take_back(self):
        self.last.take_back()
        self.written = False

    def ends(self):
        written, self.written = self.written, False
        return {"titles.jsonl": self.file.end} if written else {}

    def files(self):
        return ("titles.jsonl",)


seed, directory, resume = sys.argv[1:]
known = catalog()
known.add("titles", Titles)
if resume == "yes":
    crawl = Crawl([], build(all_options(), {"output": directory, "resume": True}), catalog=known)
else:
    wiring = shipped("default")
    plan = ProviderPlan("titles", {"ledger": "ledger"}, {"directory": directory})
    commit = wiring.components["commit"]
    commit = msgspec.structs.replace(commit, providers={**commit.providers, "keepers": {"visits": ["log", "titles"]}})
    wiring = msgspec.structs.replace(
        wiring,
        providers={**wiring.providers, "titles": plan},
        components={**wiring.components, "commit": commit},
    )
    options = build(all_options(), {"output": directory, "delay": 0, "per_host": 4, "concurrency": 8})
    crawl = Crawl([seed], options, wiring=wiring, catalog=known)
print(run(crawl).state)
"""


@pytest.mark.parametrize(
    "crash",
    [
        pytest.param(["archive-written:2", "archive-written:3", "archive-written:9"], marks=pytest.mark.long),
        pytest.param(["before-commit:6", "before-commit:9"], marks=pytest.mark.long),
        ["after-commit:6", "after-commit:9", "archive-written:5"],
    ],
    ids=lambda points: points[0].partition(":")[0],
)
def test_a_keeper_of_ones_own_loses_and_doubles_nothing_when_the_crawl_is_killed(
    tmp_path: Path, crash: list[str]
) -> None:
    directory, program = tmp_path / "crawl", tmp_path / "program.py"
    program.write_text(PROGRAM)
    with FakeWeb.tree(4, 3) as web:
        wanted = {web.url(path) for path in web.expected}
        for number, point in enumerate([*crash, ""]):
            has_begun = (directory / "crawl.toml").exists()
            done = subprocess.run(
                [sys.executable, str(program), web.url("/"), str(directory), "yes" if number and has_begun else "no"],
                env={**os.environ, "GOSSAMER_CRASH": point},
                capture_output=True,
                text=True,
            )
            assert done.returncode == (-9 if point else 0), done.stderr
    assert done.stdout.split() == ["finished"]
    found = [json.loads(line)[0] for line in (directory / "titles.jsonl").read_text().splitlines()]
    assert len(found) == len(set(found)), "a page was kept twice"
    assert set(found) == wanted
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    with ledger.looking():
        space = Space("example-titles")
        ledger.spaces.open(space)
        assert ledger.spaces.get(space, "127.0.0.1", b"pages") == b"%d" % len(wanted)
        assert [one.wrong for one in ledger.spaces.figures()] == [0]

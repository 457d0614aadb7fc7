"""`gossamer trim` where several agents visited their pages again and again, beside a database, an index and triples."""

import json
import signal
import sqlite3
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.engine import processes
from gossamer.query.database import Database
from gossamer.search.asking import Search
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeRequest, FakeWeb

#: Hosts of one page each, and how often all of them are visited at least, taken together.
HOSTS, VISITS = 6, 5


def page(number: int, times: "Counter[str]") -> object:
    """A page that says something else at each visit, to readers and to programs."""

    def answer(request: FakeRequest) -> str:
        times[request.target] += 1
        said = f"visit{times[request.target]}"
        data = json.dumps({"@context": "https://schema.org", "@type": "Product", "name": said})
        return (
            f'<title>{number}</title><p>{said} <a href="http://www.h{(number + 1) % HOSTS}.test/">next</a>'
            f'<script type="application/ld+json">{data}</script>'
        )

    return answer


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl by two agents that came back to each page some times."""
    folder = tmp_path_factory.mktemp("agents")
    with sqlite3.connect(folder / "my.db") as mine:
        mine.execute("CREATE TABLE docs (address TEXT, bytes INTEGER, visit TEXT, crawl TEXT)")
    (folder / "sinks.toml").write_text(
        f'[sinks.mine]\nurl = "sqlite:///{folder}/my.db"\n[[sinks.mine.tables]]\nfrom = "pages"\ninto = "docs"\n'
        'columns = { address = "url", bytes = "bytes", visit = "visit", crawl = "crawl" }\n',
        encoding="utf-8",
    )
    times: Counter[str] = Counter()
    with FakeWeb({f"http://www.h{n}.test/": page(n, times) for n in range(HOSTS)}) as web:  # type: ignore[misc]
        given = ["--agents", "2", "--scope", "any", "--delay", "0", "--recrawl", "every=500ms", "--rdf", "--index"]
        given += ["--sinks", str(folder / "sinks.toml"), "--allow-network", "127.0.0.0/8", "--quiet"]
        line = processes.command("gossamer", "crawl", "http://www.h0.test/", "--resolve", web.resolve, *given)
        crawl = subprocess.Popen(
            [*line, "-o", str(folder / "c")],
            env=processes.environment(),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        web.wait_for(VISITS * HOSTS)
        crawl.send_signal(signal.SIGINT)
        _, told = crawl.communicate(timeout=HUNG_AFTER)
    assert crawl.returncode == 3, told
    return folder


def asked(crawl: Path, sql: str) -> list[tuple[object, ...]]:
    with Database(crawl) as database:
        return list(database.ask(sql))


@pytest.mark.long
def test_old_versions_go_from_every_agent_and_from_all_that_follows(
    visited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = visited / "c"
    before = asked(crawl, "SELECT url, visit FROM pages_all")
    times = Counter(url for url, _ in before)
    assert len(times) == HOSTS and max(times.values()) > 1
    files = "".join(str(name) for (name,) in asked(crawl, "SELECT DISTINCT warc_file FROM pages_all"))
    assert "agent-00" in files and "agent-01" in files
    assert main(["trim", str(crawl), "--keep-versions", "1"]) == 0, capsys.readouterr().err
    told = verify(crawl, deep=True)
    assert (told.findings, told.notes) == ([], [])
    left = dict(asked(crawl, "SELECT url, visit FROM pages_all"))
    assert len(left) == HOSTS and len(asked(crawl, "SELECT 1 FROM pages_all")) == HOSTS
    with sqlite3.connect(visited / "my.db") as mine:
        assert dict(mine.execute("SELECT address, visit FROM docs")) == left, "the database has the rows of the tables"
        assert mine.execute("SELECT count(*) FROM docs").fetchone() == (HOSTS,)
    names = [str(name) for (name,) in asked(crawl, "SELECT object FROM triples_all WHERE predicate LIKE '%name'")]
    assert len(names) == HOSTS
    capsys.readouterr()
    assert main(["sparql", str(crawl), "SELECT ?n WHERE { GRAPH ?g { ?s schema:name ?n } }", "-f", "csv"]) == 0
    assert sorted(capsys.readouterr().out.split()[1:]) == sorted(names)
    search = Search(crawl)
    assert all(search.ask(name).total >= 1 for name in names)
    assert search.ask("visit1").total == names.count("visit1"), "the first version of a page is found no more"

"""What we keep, read by the programs that people have: pywb replays it, py-wacz validates it, pyarrow reads the tables.

They live in an environment of their own: `./gossamer dev readers` makes it and runs this.
"""

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.storage.archive.cdxj import surt
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.url import canonical

pytestmark = pytest.mark.long

SQUEEZED = gzip.compress(b"<title>Squeezed</title>" + b"words " * 2000)

PAGES: dict[str, str | FakePage] = {
    "/": "<title>Root</title>"
    + "".join(
        f'<a href="{path}">x</a>'
        for path in ("/a?b=2&a=1", "/A/", "/same1", "/same2", "/moved", "/gz", "/none", "/secret", "/%C3%A9", "/big")
    ),
    "/a?b=2&a=1": "<p>query",
    "/A/": "<p>upper case",
    "/same1": "<p>the same",
    "/same2": "<p>the same",
    "/moved": FakePage(status=302, headers=(("Location", "/target"),)),
    "/target": "<p>target",
    "/gz": FakePage(body=SQUEEZED, headers=(("Content-Encoding", "gzip"),)),
    "/secret": FakePage(body="<p>secret words", headers=(("X-Robots-Tag", "noarchive"),)),
    "/%C3%A9": "<p>accent",
    "/big": FakePage(body=b"<p>" + os.urandom(64).hex().encode() * 20_000, chunked=True),
}

REPLAY = """
import json, os, sys
crawl, place, paths = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
os.chdir(place)
collection = {"index_paths": crawl + "/index.cdxj", "archive_paths": crawl + "/warc/"}
with open("config.yaml", "w") as file:
    json.dump({"collections": {"c": collection}}, file)
from gevent.monkey import patch_all
patch_all()
from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client
client = Client(FrontEndApp(config_file="config.yaml"))
found = {}
for url in paths:
    answer = client.get("/c/id_/" + url)
    found[url] = [answer.status_code, answer.headers.get("Content-Type"), answer.data.hex()]
print("ANSWER" + json.dumps(found))
"""

KEYS = """
import json, sys
from pywb.utils.canonicalize import canonicalize
print("ANSWER" + json.dumps({url: canonicalize(url) for url in json.load(sys.stdin)}))
"""

TABLES = """
import json, sys
import pyarrow.parquet
table = pyarrow.parquet.read_table(sys.argv[1])
print("ANSWER" + json.dumps({"rows": table.num_rows, "columns": table.column_names}))
"""


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("GOSSAMER_READERS", "")
    if not Path(found).exists() or not found:
        pytest.skip("GOSSAMER_READERS names no Python with pywb and wacz; ./gossamer dev readers does")
    return found


def ask(python: str, program: str, *arguments: str, given: str = "") -> Any:
    """What a program in the readers' environment answers, as JSON behind a word of its own: pywb talks a lot."""
    command = [python, "-W", "ignore", "-c", program, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=HUNG_AFTER, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    [answer] = [line for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    return json.loads(answer.removeprefix("ANSWER"))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FakeWeb]:
    folder = tmp_path_factory.mktemp("crawl") / "crawl"
    with FakeWeb(PAGES) as web:
        job = Crawl([web.url("/")], build(all_options(), {"output": str(folder), "per_host": 4, "delay": 0}))
        assert run(job).state == "finished"
    return folder, web


def test_pywb_serves_what_was_served_live(python: str, crawled: tuple[Path, FakeWeb], tmp_path: Path) -> None:
    folder, web = crawled
    urls = [web.url(path) for path in PAGES]
    found = ask(python, REPLAY, str(folder), str(tmp_path), json.dumps([*urls, web.url("/none"), web.url("/never")]))
    for path, page in PAGES.items():
        status, kind, body = found[web.url(path)]
        served = page if isinstance(page, FakePage) else FakePage(body=page)
        if path == "/secret":
            assert status == 404
            continue
        assert status == served.status, path
        wanted = served.body.encode() if isinstance(served.body, str) else served.body
        assert bytes.fromhex(body) == (gzip.decompress(wanted) if path == "/gz" else wanted), path
        assert kind == "text/html; charset=utf-8"
    assert found[web.url("/none")][0] == 404
    assert bytes.fromhex(found[web.url("/none")][2]) != bytes.fromhex(found[web.url("/never")][2])


def test_the_wacz_is_valid(python: str, crawled: tuple[Path, FakeWeb], tmp_path: Path) -> None:
    target = tmp_path / "crawl.wacz"
    assert main(["export", str(crawled[0]), "--to", "wacz", "-o", str(target)]) == 0
    wacz = Path(python).parent / "wacz"
    command = [str(wacz), "validate", "-f", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG_AFTER, check=False)
    assert "Validation succeeded" in done.stdout, done.stdout + done.stderr


def test_keys_are_those_of_pywb(python: str) -> None:
    import itertools

    hosts = ["www.example.com", "WWW12.example.com", "a.b.co.uk:8080", "127.0.0.1", "www.www.com", "wwwx.com"]
    paths = ["", "a/B//../c/", "%2e%2E/x", "..%2f//=+", "a%252541", "(012345678901234567890123)/x.aspx", "é~|^`{<>"]
    queries = ["", "?", "?b=2&a=1&a", "?x=%26%3D&&", "?sid=0123456789abcdef0123456789abcdef&z", "?cfid=1&cftoken=2&x"]
    urls = [canonical(f"http://{h}/{p}{q}") for h, p, q in itertools.product(hosts, paths, queries)]
    keys = ask(python, KEYS, given=json.dumps(urls))
    assert {url: surt(url) for url in urls} == keys


def test_pyarrow_reads_the_tables(python: str, crawled: tuple[Path, FakeWeb]) -> None:
    [path] = (crawled[0] / "tables" / "pages").glob("*.parquet")
    found = ask(python, TABLES, str(path))
    assert found["rows"] == len(PAGES) + 1
    assert {"url", "warc_offset", "simhash"} <= set(found["columns"])

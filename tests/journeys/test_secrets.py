"""Credentials in a whole crawl: they reach their site, and are written down nowhere but in the owner's own file."""

import gzip
import stat
from pathlib import Path

from gossamer.assembly.crawl import Crawl, run
from gossamer.assembly.options import CrawlOptions
from gossamer.testing.fakeweb import FakeWeb, Page, Request

SECRET = b"bWU6c2VjcmV0"


def test_a_password_opens_its_site_and_no_other_and_is_in_no_record(tmp_path: Path) -> None:
    def guarded(request: Request) -> Page:
        if request.header("authorization") == f"Basic {SECRET.decode()}":
            return Page('<a href="/in">x</a><a href="http://other.test/">y</a>')
        return Page("", status=401, headers=(("WWW-Authenticate", "Basic"),))

    def moved(request: Request) -> Page:
        return Page("", status=302, headers=(("Location", "http://other.test/moved"),))

    with FakeWeb({"http://a.test/": guarded, "http://a.test/in": moved, "http://other.test/": "other"}) as web:
        seed = "http://a.test/"
        options = CrawlOptions(
            output=str(tmp_path / "c"), auth=("me:secret",), scope="any", resolve=(web.resolve,), per_host=4
        )
        settings = {"dns": {"allow_networks": ["127.0.0.0/8"], "allow_ports": [web.port]}}
        summary = run(Crawl([seed], options, settings=settings))
        sent = {(r.host, r.header("authorization") != "") for r in web.requests}
    assert summary.outcomes["ok"] == 2
    assert sent == {("a.test", True), ("other.test", False)}
    kept = [path for path in (tmp_path / "c").rglob("*") if path.is_file()]
    for path in kept:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        assert (SECRET in data) == (path.name == "crawl.toml"), path
    assert stat.S_IMODE((tmp_path / "c" / "crawl.toml").stat().st_mode) == 0o600

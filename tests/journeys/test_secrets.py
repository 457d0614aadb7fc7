"""Credentials in a whole crawl: they reach their site, and are written down nowhere but in the owner's own file."""

import asyncio
import gzip
import stat
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.crawls.control.messages import Change
from gossamer.crawls.control.steering import answer
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import HIDDEN
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

SECRET = b"bWU6c2VjcmV0"


def test_a_password_opens_its_site_and_no_other_and_is_in_no_record(tmp_path: Path) -> None:
    def guarded(request: FakeRequest) -> FakePage:
        if request.header("authorization") == f"Basic {SECRET.decode()}":
            return FakePage('<a href="/in">x</a><a href="http://other.test/">y</a>')
        return FakePage("", status=401, headers=(("WWW-Authenticate", "Basic"),))

    def moved(request: FakeRequest) -> FakePage:
        return FakePage("", status=302, headers=(("Location", "http://other.test/moved"),))

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


def test_a_key_in_a_header_goes_to_the_seeds_and_to_the_hosts_that_are_named_for_it(tmp_path: Path) -> None:
    pages: dict[str, FakePage | str] = {
        "http://a.test/": '<a href="http://b.test/">b</a><a href="http://c.test/">c</a><a href="/moved">m</a>',
        "http://a.test/moved": FakePage("", status=302, headers=(("Location", "http://c.test/moved"),)),
    }
    with FakeWeb({**pages, "http://b.test/": "b", "http://c.test/": "c"}) as web:
        options = CrawlOptions(
            output=str(tmp_path / "c"),
            header=("X-Api-Key: k3y-0f-mine",),
            header_for=("b.test",),
            scope="any",
            resolve=(web.resolve,),
        )
        settings = {"dns": {"allow_networks": ["127.0.0.0/8"], "allow_ports": [web.port]}}
        run(Crawl(["http://a.test/"], options, settings=settings))
        sent = {(r.host, r.header("x-api-key")) for r in web.requests}
    assert sent == {("a.test", "k3y-0f-mine"), ("b.test", "k3y-0f-mine"), ("c.test", "")}
    for path in (path for path in (tmp_path / "c").rglob("*") if path.is_file()):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        assert (b"k3y-0f-mine" in data) == (path.name == "crawl.toml"), path
    assert mode(tmp_path / "c") == 0o600


def mode(directory: Path) -> int:
    return stat.S_IMODE((directory / "crawl.toml").stat().st_mode)


@pytest.mark.parametrize("form", ["toml", "json", "text"])
def test_topology_shows_no_password(form: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ["--auth", "me:secret", "--proxy", "http://me:secret@proxy.test:1", "--header", "Cookie: secret=1"]
    assert main(["topology", "http://a.test/", *given, "--format", form]) == 0
    shown = capsys.readouterr().out
    assert "secret" not in shown and SECRET.decode() not in shown
    assert (HIDDEN in shown) is (form != "text")
    if form == "toml":
        (tmp_path / "printed.toml").write_text(shown)
        assert main(["crawl", "--wiring", str(tmp_path / "printed.toml"), "-o", str(tmp_path / "c")]) == 2
        assert "was hidden when this wiring was printed; give its value again" in capsys.readouterr().err


def test_a_password_that_is_set_while_a_crawl_runs_is_told_to_nobody(tmp_path: Path, socket_folder: Path) -> None:
    directory = tmp_path / "c"
    value = f"http://other.test Authorization: Basic {SECRET.decode()}"
    told = []

    async def crawl(web: FakeWeb) -> None:
        job = Crawl([web.url("/")], CrawlOptions(output=str(directory), delay=0))
        running = asyncio.ensure_future(job.run())
        while not job.working and not running.done():
            await asyncio.sleep(0.001)
        assert mode(directory) != 0o600
        told.append(str(await answer(job, Change({"http.credentials": value, "proxy": ""}))))
        with pytest.raises(SettingError) as refusal:
            await answer(job, Change({"http.credentials": f"[{SECRET.decode()}"}))
        told.append(str(refusal.value))
        told.append(str(await answer(job, Change({"proxy": f"http://me:{SECRET.decode()}@127.0.0.1:1"}))))
        assert "frontier.proxied = true" in told[-1]
        job.stop()
        await running

    with FakeWeb.tree(3, 4) as web:
        asyncio.run(crawl(web))
    told.append((directory / "logs" / "steering.jsonl").read_text())
    assert SECRET.decode() not in "".join(told) and HIDDEN in told[0]
    assert mode(directory) == 0o600
    assert SECRET in (directory / "crawl.toml").read_bytes(), "a crawl that goes on needs it"


def test_a_password_that_is_given_on_resume_closes_the_file_to_others(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with FakeWeb.tree(3, 3) as web:
        run(Crawl([web.url("/")], CrawlOptions(output=str(directory), delay=0, max_pages=5)))
        assert mode(directory) != 0o600
        options = CrawlOptions(output=str(directory), delay=0, resume=True, auth=("other.test=me:secret",))
        assert run(Crawl([], options)).state == "limit"
    assert mode(directory) == 0o600


def test_secrets_of_the_environment_and_of_files_open_a_site_and_are_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def guarded(request: FakeRequest) -> FakePage:
        is_known = request.header("authorization") == "Bearer hushhush" and request.header("cookie") == "session=mumble"
        return FakePage('<a href="/in">x</a>') if is_known else FakePage("", status=403)

    monkeypatch.setenv("SITE_TOKEN", "Bearer hushhush")
    cookies = tmp_path / "cookies.txt"
    directory = tmp_path / "c"
    with FakeWeb({"/": guarded, "/in": guarded}) as web:
        cookies.write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tmumble\n")
        cookies.chmod(0o600)
        options = ["--auth", "$SITE_TOKEN", "--cookie-file", str(cookies), "--delay", "0", "--quiet"]
        assert main(["crawl", web.url("/"), "-o", str(directory), *options, "--max-pages", "1"]) == 0
        assert main(["resume", str(directory), "--max-pages", "9", "--quiet"]) == 0
        assert len([one for one in web.requests if one.header("authorization")]) >= 2
    for path in [path for path in directory.rglob("*") if path.is_file()]:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        assert b"hushhush" not in data, path
        assert b"mumble" not in data, path
    with Database(directory) as database:
        assert list(database.ask("SELECT count(*) FROM pages WHERE outcome = 'ok'")) == [(2,)]


def test_a_secret_that_is_not_there_is_one_line_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, told in (
        (["--auth", "$NO_SUCH_NAME"], "no NO_SUCH_NAME"),
        (["--auth", f"a.test=@{tmp_path / 'none'}"], "cannot be read"),
        (["--cookie-file", str(tmp_path / "none")], "cannot be read"),
    ):
        assert main(["crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "c"), *options]) == 2
        assert told in capsys.readouterr().err
    assert not (tmp_path / "c").exists()

"""Bearer tokens of spiders: by OAuth 2.0, before the first page of a site, anew before they end, and kept nowhere."""

import base64
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

import gossamer
from gossamer.engine.errors import ComponentFailed, SettingError
from gossamer.spiders.logins import Entrances
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

SECRET = "s3cr3t/of a client"


class Api:
    """A site whose answers are for those who bear its newest token, and the server that issues them."""

    def __init__(self, **more: Any) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.clients: list[str] = []
        self.more = more

    def token(self, request: FakeRequest) -> FakePage:
        self.asked.append(parse_qs(request.body.decode()))
        self.clients.append(base64.b64decode(request.header("authorization").partition(" ")[2]).decode())
        number = len(self.asked)
        told = {
            "access_token": f"t0ken{number}",
            "token_type": "Bearer",
            "refresh_token": f"r3fresh{number}",
            **self.more,
        }
        body = (
            "{" + ",".join(f'"{k}":{v if isinstance(v, int) else chr(34) + v + chr(34)}' for k, v in told.items()) + "}"
        )
        return FakePage(body, type="application/json")

    def answer(self, request: FakeRequest) -> FakePage:
        if request.header("authorization") != f"Bearer t0ken{len(self.asked)}":
            return FakePage("<p>no", status=401)
        return FakePage("<h1>in</h1><a href=/2>2</a><a href=/3>3</a>")

    @property
    def pages(self) -> Any:
        return {"/token": self.token, "/": self.answer, "/2": self.answer, "/3": self.answer}


def spider_of(web: FakeWeb, **more: str) -> gossamer.Spider:
    spider = gossamer.Spider(web.url("/"), delay=0, robots="ignore", per_host=1)
    spider.oauth2(web.url("/"), token_url=web.url("/token"), client="me", **{"secret": "$SHOP_SECRET", **more})

    @spider.page()
    def page(page: gossamer.Page) -> list[gossamer.Result]:
        return [{"name": page.text("h1"), "url": page.url}, *page.follow_all("a")]

    return spider


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    monkeypatch.setenv("SHOP_REFRESH", "r3fresh0")


@pytest.mark.usefixtures("secret")
def test_a_token_is_asked_for_once_goes_with_every_request_of_its_site_and_is_kept_nowhere(tmp_path: Path) -> None:
    api = Api(expires_in=3600)
    with FakeWeb(api.pages) as web:
        summary = spider_of(web, scope="read").run(output=str(tmp_path / "crawl"))
    assert summary.pages == 3 and summary.outcomes == {"ok": 3}
    assert api.asked == [{"grant_type": ["client_credentials"], "scope": ["read"]}]
    assert api.clients == ["me:s3cr3t%2Fof+a+client"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            assert b"t0ken" not in content and b"s3cr3t" not in content, path


class Issuer:
    """Answers requests for tokens, without a network; what it was asked and what was granted."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.granted: list[str] = []

    async def ask(self, task: Task) -> Response:
        assert task.request is not None
        self.asked.append(parse_qs(task.request.body.decode()))
        number = len(self.asked)
        body = f'{{"access_token":"t{number}","token_type":"bearer","expires_in":100,"refresh_token":"r{number}"}}'
        headers = (("content-type", "application/json"),)
        return Response(Outcome.OK, status=200, headers=headers, body=body.encode())

    def grant(self, url: str, field: str, session: str = "") -> None:
        self.granted.append(field)

    def has_entered(self, url: str, session: str = "") -> bool:
        return False

    def note_entered(self, url: str, session: str = "") -> None:
        raise AssertionError("a token is noted nowhere")


@pytest.mark.usefixtures("secret")
def test_a_token_is_asked_for_anew_before_it_ends_with_the_newest_refresh_token(run: Callable[[Any], Any]) -> None:
    spider = gossamer.Spider("http://a.test/")
    spider.oauth2("http://a.test/", token_url="https://b.test/token", client="me", refresh_token="$SHOP_REFRESH")
    now, issuer = [1000.0], Issuer()
    entrances = Entrances(spider.logins, lambda: now[0])

    async def body() -> None:
        for seconds in (0, 80, 15):
            now[0] += seconds
            await entrances.enter("http://a.test/page", issuer.ask, issuer, issuer.grant)
            await entrances.enter("http://b.test/page", issuer.ask, issuer, issuer.grant)

    run(body())
    assert issuer.granted == ["Authorization: Bearer t1", "Authorization: Bearer t2"]
    assert [one["refresh_token"] for one in issuer.asked] == [["r3fresh0"], ["r1"]]
    assert {one["grant_type"][0] for one in issuer.asked} == {"refresh_token"}


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"access_token": "two words"}, "a bearer token is one word"),
        ({"token_type": "mac"}, "no bearer token is in its answer"),
        ({"error": "invalid_client", "access_token": 7}, "invalid_client"),
    ],
)
def test_a_server_that_gives_no_token_ends_the_crawl_with_one_line(tmp_path: Path, more: Any, told: str) -> None:
    api = Api(**more)
    with FakeWeb(api.pages) as web, pytest.raises(ComponentFailed, match=told) as caught:
        spider_of(web).run(output=str(tmp_path / "crawl"))
    assert "test_tokens.py:" in str(caught.value) and "\n" not in str(caught.value) and SECRET not in str(caught.value)


@pytest.mark.usefixtures("secret")
def test_a_secret_goes_out_over_https_alone_and_has_to_be_there() -> None:
    spider = gossamer.Spider("http://a.test/")
    with pytest.raises(gossamer.UsageError, match="a secret is sent over https alone"):
        spider.oauth2("http://a.test/", token_url="http://a.test/token", client="me", secret="$SHOP_SECRET")
    with pytest.raises(SettingError, match="the environment has no ABSENT_SECRET"):
        spider.oauth2("http://a.test/", token_url="https://a.test/token", client="me", secret="$ABSENT_SECRET")
    with pytest.raises(SettingError, match="name a variable as"):
        spider.oauth2("http://a.test/", token_url="https://a.test/token", client="me", secret="in plain text")

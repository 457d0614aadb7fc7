"""Secrets of the environment and of files, and cookies of a file."""

from pathlib import Path

import pytest

from gossamer.engine.errors import SettingError
from gossamer.fetcher.authentication import field_of, fill, given_credentials
from gossamer.fetcher.cookies import CookieJar

NOW = 1_700_000_000.0
LATER = int(NOW) + 1000


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_secret_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "Bearer abc.def\n")
    path = private(tmp_path / "password", "me:secret\n")
    entries = ("https://a.test $MY_TOKEN", f"https://b.test @{path}", "https://c.test X: y")
    assert given_credentials(entries) == (
        "https://a.test Authorization: Bearer abc.def",
        "https://b.test Authorization: Basic bWU6c2VjcmV0",
        "https://c.test X: y",
    )


def test_a_secret_that_is_not_there_or_not_private_is_refused_without_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NONE", raising=False)
    monkeypatch.setenv("ODD", "hushhush")
    path = private(tmp_path / "open", "me:hushhush")
    path.chmod(0o644)
    for reference, told in (
        ("$NONE", "has no NONE"),
        ("$ODD", "USER:PASSWORD"),
        (f"@{path}", "chmod 600"),
        (f"@{tmp_path / 'none'}", "cannot be read"),
    ):
        with pytest.raises(SettingError, match=told) as caught:
            field_of(reference)
        assert "hushhush" not in str(caught.value)


NETSCAPE = f"""# Netscape HTTP Cookie File
#HttpOnly_.a.test\tTRUE\t/\tFALSE\t{LATER}\tshared\t1
www.a.test\tFALSE\t/in\tTRUE\t0\town\t2
a.test\tFALSE\t/\tFALSE\t5\told\t3
"""
JSON = f"""[
 {{"domain": ".a.test", "name": "shared", "value": "1", "path": "/", "expirationDate": {LATER}.5, "httpOnly": true}},
 {{"domain": "www.a.test", "hostOnly": true, "name": "own", "value": "2", "path": "/in", "secure": true, "expires": -1}},
 {{"domain": "a.test", "name": "old", "value": "3", "expires": 5}}
]"""


@pytest.mark.parametrize("text", [NETSCAPE, JSON, f'{{"cookies": {JSON}, "origins": []}}'])
def test_cookies_of_a_file_go_where_they_belong(tmp_path: Path, text: str) -> None:
    jar = CookieJar()
    assert fill(jar, private(tmp_path / "cookies", text), NOW) == 2
    assert jar.field("https://www.a.test/in", NOW) == "own=2; shared=1"
    assert jar.field("http://www.a.test/in", NOW) == "shared=1"
    assert jar.field("https://b.a.test/", NOW) == "shared=1"
    assert jar.field("https://b.test/", NOW) == ""
    assert jar.field("https://b.a.test/", NOW + 2000) == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("one two", "line 1: write seven cells"),
        ("# x\na.test\tTRUE\t/\tFALSE\tsoon\tn\tv", "line 2"),
        ("a.test\tFALSE\t/\tFALSE\t0\tn\tv\x01", "line 1 is not a cookie"),
        ("a b\tFALSE\t/\tFALSE\t0\tn\tv", "line 1 is not a cookie"),
        ("{", "no list of cookies"),
        ('[{"name": "a"}]', "no list of cookies"),
    ],
)
def test_a_file_that_holds_no_cookies_is_told_by_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingError, match=told):
        fill(CookieJar(), private(tmp_path / "cookies", text), NOW)


def test_a_cookie_of_a_public_suffix_is_its_hosts_alone(tmp_path: Path) -> None:
    jar = CookieJar()
    fill(jar, private(tmp_path / "cookies", f".co.uk\tTRUE\t/\tFALSE\t{LATER}\tn\tv"), NOW)
    assert jar.field("http://a.co.uk/", NOW) == ""


def test_cookies_that_others_can_read_are_refused(tmp_path: Path) -> None:
    path = private(tmp_path / "cookies", NETSCAPE)
    path.chmod(0o640)
    with pytest.raises(SettingError, match="chmod 600"):
        fill(CookieJar(), path, NOW)

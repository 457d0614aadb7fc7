"""The list of sites, and whatever else a person keeps: readable for its owner alone, and never lost in silence."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from gossamer.dashboard.crawls import Crawls
from gossamer.dashboard.questions import names_of_reports, save_questions
from gossamer.dashboard.sites import (
    ListedSite,
    ListedSites,
    entrance,
    folders,
    is_own,
    list_sites,
    save_sites,
    sites_file,
)
from gossamer.values.errors import UsageError


def sites(*pairs: tuple[str, str]) -> bytes:
    return json.dumps({"sites": [{"name": name, "place": place} for name, place in pairs]}).encode()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "config" / "gossamer" / "sites.json"


def test_sites_are_kept_for_their_owner_alone_and_their_keys_are_not_told(tmp_path: Path, kept: Path) -> None:
    body = sites(("here", str(tmp_path)), ("there", "https://crawler.example:8443/?token=SECRET"))
    told = save_sites(kept, body)
    assert told == list_sites(kept)
    assert told == ListedSites(
        [
            ListedSite("here", str(tmp_path), is_address=False, has_key=False),
            ListedSite("there", "https://crawler.example:8443/", is_address=True, has_key=True),
        ]
    )
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert [path.name for path in kept.parent.iterdir()] == ["sites.json"], "nothing half is left"
    assert folders(kept) == {tmp_path: "here"}
    assert entrance(kept, "there") == "https://crawler.example:8443/?token=SECRET"


def test_sites_are_kept_with_their_descriptions(tmp_path: Path, kept: Path) -> None:
    given = [
        {"name": "here", "place": str(tmp_path), "description": "crawls of the institute"},
        {"name": "there", "place": "http://one.example:1/?token=SECRET", "description": "the big machine"},
    ]
    for _ in range(2):
        told = save_sites(kept, json.dumps({"sites": given}).encode())
        assert [one.description for one in told.sites] == ["crawls of the institute", "the big machine"]
    with pytest.raises(UsageError, match="length <= 500"):
        save_sites(kept, json.dumps({"sites": [{**given[0], "description": "x" * 501}]}).encode())


def test_a_key_stays_with_its_address_and_goes_to_no_other(kept: Path) -> None:
    save_sites(kept, sites(("a", "http://one.example:1/?token=SECRET")))
    save_sites(kept, sites(("renamed", "http://one.example:1/"), ("other", "http://two.example:1/")))
    assert entrance(kept, "renamed").endswith("?token=SECRET")
    assert entrance(kept, "other") == "http://two.example:1/"
    with pytest.raises(UsageError, match="no dashboard of this name"):
        entrance(kept, "a")


@pytest.mark.parametrize(
    "place",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "relative/folder",
        "http://",
        "http://user:word@host/",
        "http://host:99999/",
        "http://[::1",
        'http://ho"st/',
        "http://host/<x>",
        "/no/such/folder",
        "/etc/passwd",
        "/\0",
        "",
    ],
)
def test_what_is_neither_a_folder_nor_an_address_is_refused_and_changes_nothing(
    tmp_path: Path, kept: Path, place: str
) -> None:
    save_sites(kept, sites(("here", str(tmp_path))))
    with pytest.raises(UsageError):
        save_sites(kept, sites(("here", str(tmp_path)), ("bad", place)))
    assert [one.name for one in list_sites(kept).sites] == ["here"]


def test_two_sites_of_one_name_and_more_than_a_list_holds_are_refused(tmp_path: Path, kept: Path) -> None:
    with pytest.raises(UsageError, match="one name"):
        save_sites(kept, sites(("x", str(tmp_path)), ("x", "http://a.example/")))
    with pytest.raises(UsageError):
        save_sites(kept, sites(*((str(number), "http://a.example/") for number in range(101))))
    assert not kept.exists()


def test_a_folder_that_is_away_stays_in_the_list(tmp_path: Path, kept: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    save_sites(kept, sites(("disk", str(disk))))
    disk.rmdir()
    save_sites(kept, sites(("disk", str(disk)), ("more", str(tmp_path))))
    assert [one.name for one in list_sites(kept).sites] == ["disk", "more"]
    assert folders(kept) == {tmp_path: "more"}


def test_a_damaged_list_is_told_and_never_written_over(kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text('{"sites": [')
    for attempt in (lambda: list_sites(kept), lambda: save_sites(kept, sites(("a", "http://a.example/")))):
        with pytest.raises(UsageError, match="damaged"):
            attempt()
    assert (kept.read_text(), folders(kept)) == ('{"sites": [', {})
    with pytest.raises(UsageError, match="damaged"):
        save_questions(kept, b'{"saved": []}')
    assert "damaged" in names_of_reports(kept).trouble and names_of_reports(kept).reports


def test_a_list_behind_a_link_is_not_read(tmp_path: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_bytes(sites(("a", "http://a.example/")))
    kept.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UsageError, match="cannot be read"):
        list_sites(kept)


def test_crawls_of_sites_are_shown_by_their_name_and_those_of_others_are_not(tmp_path: Path) -> None:
    for name in ("given", "site/one", "site/given-too"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "crawl.toml").touch()
    listed: dict[Path, str] = {}
    crawls = Crawls([tmp_path / "given", tmp_path / "site" / "given-too"], lambda: listed)

    async def shown() -> dict[str, str]:
        return {one.directory.name: one.site for one in (await crawls.all()).values()}

    async def scenario() -> None:
        assert await shown() == {"given": "", "given-too": ""}
        listed[tmp_path / "site"] = "mine"
        crawls.look_anew()
        assert await shown() == {"given": "", "given-too": "", "one": "mine"}
        listed.clear()
        crawls.look_anew()
        assert await shown() == {"given": "", "given-too": ""}

    asyncio.run(scenario())
    crawls.close()
    assert is_own(tmp_path) and not is_own(tmp_path / "none")
    if os.getuid():
        assert not is_own(Path("/")), "a folder of another user"


def test_the_list_lies_in_the_folder_of_the_users_choices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert sites_file().parent == tmp_path / "gossamer"

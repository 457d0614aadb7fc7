"""Noise: which lists are understood, and which links they refuse."""

from pathlib import Path

import pytest

from gossamer.engine.errors import SettingError
from gossamer.parsing.scope import NoiseFilter, NoiseList, NoiseSheet
from gossamer.values.task import Task
from gossamer.values.visit import Link

PAGE = Task("http://www.a.test/", host="www.a.test")

MINE = """
# ours
ads.test          # the whole domain
Mixed.Test/Banner/
mixed.test/click?
/**/adserver/*.gif
0.0.0.0 host.test localhost other.host.test
127.0.0.1	localhost
:: six.test
! a rule of a browser's blocker follows
||blocked.test^$third-party
not a domain
"""


def refused(rule: NoiseFilter, *urls: str, page: Task = PAGE) -> list[str]:
    return [url for url, verdict in zip(urls, rule.judge([Link(url) for url in urls], page), strict=True) if verdict]


@pytest.fixture
def mine(tmp_path: Path) -> NoiseFilter:
    (tmp_path / "list").write_text(MINE)
    return NoiseFilter(NoiseSheet(file=str(tmp_path / "list")))


def test_domains_stand_for_everything_below_and_hosts_files_for_hosts_alone(mine: NoiseFilter) -> None:
    noise = [
        "http://ads.test/",
        "https://x.y.ads.test:8443/z",
        "http://host.test/",
        "http://other.host.test/",
        "http://six.test/",
    ]
    pages = [
        "http://bads.test/",
        "http://ads.test.a.test/",
        "http://www.host.test/",
        "http://localhost/",
        "http://test/",
    ]
    assert refused(mine, *noise, *pages) == noise
    assert refused(mine, *noise, *pages) == noise, "and the same from memory"


def test_paths_of_a_domain_and_paths_of_any_host(mine: NoiseFilter) -> None:
    noise = [
        "http://mixed.test/banner/1",
        "http://www.mixed.test/BANNER/1",
        "http://mixed.test/click?x",
        "http://any.test/x/AdServer/1.gif?y",
        "http://www.a.test/x/adserver/1.gif",
    ]
    pages = [
        "http://mixed.test/",
        "http://mixed.test/clicks",
        "http://any.test/adservers/1.gif",
        "http://any.test/?/x/adserver/1.gif",
    ]
    assert refused(mine, *noise, *pages) == noise


def test_lines_of_other_forms_are_passed_over_and_counted(mine: NoiseFilter) -> None:
    assert mine.metrics.snapshot()["unread_lines"] == 2
    assert mine.metrics.snapshot()["entries"] == 6


def test_a_whole_domain_wins_over_its_paths() -> None:
    for lines in (["a.test/x", "a.test"], ["a.test", "a.test/x"]):
        assert NoiseList(lines).paths_of("a.test") == ()


def test_an_advertisers_own_site_can_be_crawled(mine: NoiseFilter) -> None:
    assert refused(mine, "http://ads.test/about", page=Task("http://ads.test/", "ads.test")) == []


def test_the_shipped_list_knows_the_large_ones_and_no_page_that_people_read() -> None:
    rule = NoiseFilter()
    noise = [
        "https://stats.g.doubleclick.net/x",
        "https://www.googletagmanager.com/gtm.js",
        "https://www.facebook.com/tr/?id=1",
    ]
    pages = [
        "https://www.google.com/",
        "https://www.facebook.com/travel",
        "https://example.org/ads/",
        "https://en.wikipedia.org/",
    ]
    assert refused(rule, *noise, *pages) == noise
    assert rule.metrics.snapshot()["unread_lines"] == 0
    assert refused(NoiseFilter(NoiseSheet(drop=False)), *noise) == []


def test_a_list_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        NoiseFilter(NoiseSheet(file=str(tmp_path / "none")))
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(SettingError, match="write one domain on each line"):
        NoiseFilter(NoiseSheet(file=str(tmp_path / "empty")))
    rule = NoiseFilter()
    before, rule.sheet = rule.sheet, NoiseSheet(file=str(tmp_path / "none"))
    with pytest.raises(SettingError, match="cannot be read"):
        rule.changed(before)
    assert refused(rule, "https://doubleclick.net/") == ["https://doubleclick.net/"]

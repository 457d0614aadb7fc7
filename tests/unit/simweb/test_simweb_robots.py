"""The rules of each kind of robots.txt, and the file that is written from them."""

import pytest

from gossamer.simweb.hosts import ROBOTS, allowed, crawl_delay, robots_text


@pytest.mark.parametrize(
    ("kind", "agent", "target", "verdict"),
    [
        ("allow", "Gossamer/1", "/s1/50.html", True),
        ("missing", "Gossamer/1", "/s1/50.html", True),
        ("forbidden", "Gossamer/1", "/", True),
        ("html", "Gossamer/1", "/s1/50.html", True),
        ("error", "Gossamer/1", "/", False),
        ("deny", "Gossamer/1", "/", False),
        ("deny", "Gossamer/1", "/robots.txt", True),
        ("sections", "Gossamer/1", "/s1/50.html", False),
        ("sections", "Gossamer/1", "/s10/500.html", True),
        ("wildcard", "Gossamer/1", "/s1/57.html", False),
        ("wildcard", "Gossamer/1", "/s1/57.html?x=1", True),
        ("wildcard", "Gossamer/1", "/shop/list?color=red&sort=name", False),
        ("longest", "Gossamer/1", "/s1/51.html", False),
        ("longest", "Gossamer/1", "/s1/55.html", True),
        ("longest", "Gossamer/1", "/s2/101.html", True),
        ("agents", "Gossamer/1", "/s1/50.html", False),
        ("agents", "Mozilla/5.0 (compatible; gossamer/1)", "/s1/50.html", False),
        ("agents", "Scrapy/2", "/s1/50.html", True),
        ("agents", "Scrapy/2", "/s2/100.html", False),
        ("agents", "curl/8", "/s3/150.html", False),
        ("agents", "badbot", "/", False),
        ("redirect", "Gossamer/1", "/s1/50.html", False),
        ("bom", "Gossamer/1", "/s1/50.html", False),
    ],
)
def test_rules_are_read_as_rfc_9309_says(kind: str, agent: str, target: str, verdict: bool) -> None:
    assert allowed(kind, agent, target) is verdict


def test_the_file_says_what_the_rules_are() -> None:
    written = robots_text(ROBOTS["agents"], ["http://a.sim/sitemap.xml"]).decode()
    assert "User-agent: Gossamer\nUser-agent: Wget\nDisallow: /s1/\n" in written
    assert written.endswith("Sitemap: http://a.sim/sitemap.xml\n")


def test_a_byte_order_mark_and_windows_line_ends_are_sent() -> None:
    written = robots_text(ROBOTS["bom"], [])
    assert written.startswith(b"\xef\xbb\xbfUser-agent: *\r\n")


def test_crawl_delay_is_known_to_the_auditor() -> None:
    assert crawl_delay("delay", "Gossamer/1") == 1
    assert crawl_delay("allow", "Gossamer/1") == 0

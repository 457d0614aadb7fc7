"""The web of `gossamer bench today`: each page has a body of its own, and links that lead to pages."""

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest

from gossamer.bench.todays_web import MADE, MENU, SHAPE, Template, made_page, shape_at, templates
from gossamer.values.errors import UsageError

PAGE = b"""<!DOCTYPE html><html><head><title>An article</title><base href="https://news.example/2026/">
<link rel="canonical" href="https://www.news.example/2026/an-article"></head><body class="x">
<a href="/about">About</a> <a class=y href='other.html'>Other</a> <a href="https://news.example/third">Third</a>
<a href="https://elsewhere.example/">Elsewhere</a> <a href="#top">Top</a> <a href="mailto:a@b.example">Mail</a></body></html>"""

OTHERS = ["https://127.1.0.1:1", "https://127.1.0.2:1"]


def test_links_to_the_own_site_lead_to_pages_of_the_host_and_others_stay() -> None:
    page = Template(PAGE).page(0, 3, OTHERS).decode()
    assert page.count('href="/a/') + page.count("href='/a/") == 3
    assert 'href="https://elsewhere.example/"' in page
    assert "#top" in page and "mailto:" in page
    assert "<base" not in page and "canonical" in page and "news.example" not in page


def test_every_page_has_a_body_of_its_own_and_the_same_one_each_time() -> None:
    template = Template(PAGE)
    bodies = {template.page(host, number, OTHERS) for host in range(3) for number in range(50)}
    assert len(bodies) == 150
    assert template.page(2, 7, OTHERS) == template.page(2, 7, OTHERS)


def test_most_links_are_of_the_menu_and_some_lead_to_pages_that_are_new() -> None:
    kinds = Counter(Template(made_page(random.Random(1), 0.5)).kinds)
    assert kinds["menu"] > kinds["near"] > kinds["anywhere"] > 0
    assert kinds["own"] == kinds["title"] == 1
    assert MENU < 50


def test_made_pages_have_the_sizes_that_are_published() -> None:
    sizes = [len(gzip.compress(made_page(random.Random(seed), (seed + 0.5) / 40), 6)) for seed in range(40)]
    for share, size, _ in SHAPE[1:-1]:
        assert sizes[int(share * 40)] == pytest.approx(size, rel=0.5)
    assert shape_at(0.5) == SHAPE[3][1:]
    assert MADE >= 100


def test_a_folder_gives_its_pages_and_not_what_tests_expect_of_them(tmp_path: Path) -> None:
    (tmp_path / "source.html.gz").write_bytes(gzip.compress(PAGE))
    (tmp_path / "expected.html.gz").write_bytes(gzip.compress(b"<p>Main text</p>"))
    (tmp_path / "plain.html").write_bytes(PAGE)
    assert len(templates(tmp_path)) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no \.html"):
        templates(tmp_path / "empty")

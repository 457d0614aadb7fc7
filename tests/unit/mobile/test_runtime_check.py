"""`gossamer runtime check`: what an owner is shown of a root with all that careless owners leave in theirs."""

import json
from pathlib import Path
from typing import Any

import pytest

from gossamer.cli.main import main

HOME = """<title>Home</title><a href="docs">docs</a><a href="private/a.html">private</a><a href=".git/config">git</a>
<a href="app/">app</a><a href="shut/a.html">shut</a><a href="admin/a.html">admin</a><a href="gone.html">gone</a>
<a href="out.html">out</a><a href="ruled/a.html">ruled</a><a href="http://elsewhere.example/">elsewhere</a>"""
ROBOTS = "User-agent: *\nDisallow: /admin/\nSitemap: https://example.org/sitemap.xml\nSitemap: https://elsewhere.example/s.xml\n"
SITEMAP = """<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://example.org/listed.html</loc></url></urlset>"""
REACHED = ["", "sitemap.xml", "docs/", "listed.html"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "html"
    pages = {"index.html": HOME, "robots.txt": ROBOTS, "sitemap.xml": SITEMAP, "docs/index.html": "<title>Docs</title>"}
    pages |= {"listed.html": "<title>Listed</title>", "unlinked.html": "SECRET", "private/a.html": "SECRET"}
    pages |= {".git/config": "SECRET", ".env": "SECRET", "app/index.php": "SECRET", "shut/a.html": "SECRET"}
    pages |= {"admin/a.html": "SECRET", "ruled/.htaccess": "Require all denied", "ruled/a.html": "SECRET"}
    for name, text in pages.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "shut").chmod(0o700)
    (tmp_path / "secret.html").write_text("SECRET")
    (root / "out.html").symlink_to("../secret.html")
    return root


def sheet(root: Path) -> str:
    path = root.parent / "runtime.toml"
    path.write_text(f"""refuse = ['path("/private/**")']\n[serve]\n"https://example.org" = "{root}"\n""")
    return str(path)


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["runtime", "check", "--json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_an_owner_sees_what_is_reached_by_links_and_sitemaps_and_why_the_rest_is_not(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checked(capsys, "--config", sheet(root))
    assert sorted(found["examples"]) == sorted(f"https://example.org/{path}" for path in REACHED)
    assert (found["reachable"], found["pages"], found["limit"]) == (4, 3, "")
    assert {
        name: (kind["count"], kind["examples"][0]["url"].removeprefix("https://example.org/"))
        for name, kind in found["refused"].items()
    } == {
        "refused": (1, "private/a.html"),
        "dotfile": (1, ".git/config"),
        "server_side": (1, "app/"),
        "private": (1, "shut/a.html"),
        "robots_denied": (1, "admin/a.html"),
        "outside": (1, "out.html"),
        "htaccess": (1, "ruled/a.html"),
    }
    assert found["outcomes"]["client_error"] == 1
    assert found["robots"]["https://example.org"]["state"] == "whole"


def test_a_file_that_nothing_links_to_is_reached_by_a_seed_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "unlinked" not in json.dumps(checked(capsys, "--config", sheet(root)))
    found = checked(capsys, "--config", sheet(root), "--seed", "https://example.org/unlinked.html")
    assert found["reachable"] == 5


def test_the_answer_is_in_plain_words(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "check", "--config", sheet(root)]) == 0
    shown = capsys.readouterr().out
    for text in (
        "Crawlers can reach 4 documents: 3 pages, ",
        "robots.txt of https://example.org: whole, sitemaps: 2",
        "Refused as robots_denied: 1 request, since the site's robots.txt denies it.",
        "\n    https://example.org/admin/a.html  (Disallow: /admin/ (line 2))",
        "Refused as private: 1 request, since not every user of this machine may read it.",
    ):
        assert text in shown
    assert "SECRET" not in shown


def test_a_walk_that_a_limit_ends_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = checked(capsys, "--config", sheet(root), "--max-urls", "5")
    assert found["limit"] == "urls" and found["left"] > 0


def test_a_site_where_nothing_can_be_had_ends_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "check", "--serve", f"example.org={tmp_path}"]) == 4
    assert "Refused as no_index" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nothing is served"),
        (["--serve", "x"], "write HOST=FOLDER"),
        (
            ["--serve", "a.example=/no/such/folder"],
            "/no/such/folder cannot be served: No such file or directory; bring it back, or give another place",
        ),
        (
            ["--serve", "archive=/no/such/folder"],
            "/no/such/folder cannot be served: No such file or directory; bring it back, or give another place",
        ),
        (["--serve", "a.example=/", "--seed", "http://["], "--seed: "),
        (["--config", "/no/such/file"], "/no/such/file cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runtime", "check", *arguments]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1


def test_a_crawler_runs_over_files_and_brings_none_that_the_owner_keeps(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawler = tmp_path / "all.toml"
    seeds = [
        f"https://example.org/{path}"
        for path in ("", ".env", "private/a.html", "app/index.php", "%2e%2e/secret.html", "shut/a.html")
    ]
    crawler.write_text(f'seeds = {json.dumps(seeds)}\n[bring]\nparts = ["text"]\n')
    assert main(["runtime", "run", str(crawler), "--config", sheet(root)]) == 0
    out = capsys.readouterr().out
    assert "SECRET" not in out
    brought = [json.loads(line) for line in out.splitlines()]
    assert {one["url"] for one in brought if "url" in one} == {"https://example.org/", "https://example.org/docs/"}

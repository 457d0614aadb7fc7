"""The documentation site is built from the pages of the repository, and every link of it leads somewhere without a network."""

import json
import mimetypes
import re
from pathlib import Path

import pytest

from gossamer import __version__
from gossamer.cli.main import main
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeWeb
from tools.chores import docs as site

#: What a browser would fetch to show a page; links that a person may follow are no such thing.
SHOWN = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=["']?(?:https?:)?//[^"'\s>]+""", re.IGNORECASE)


def page_of(path: Path) -> FakePage:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return FakePage(path.read_bytes(), type=kind)


@pytest.mark.long
def test_the_site_of_the_documentation_has_no_broken_link_and_needs_no_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "site"
    assert site.build_site(folder) == 0, "Sphinx warns of something"
    files = [path for path in folder.rglob("*") if path.is_file() and ".built" not in path.parts]
    pages = {f"/{path.relative_to(folder).as_posix()}": page_of(path) for path in files}
    pages["/"] = pages["/index.html"]
    with FakeWeb(pages) as web:
        line = [web.url("/"), "--resolve", web.resolve, "--allow-network", "127.0.0.0/8", "--delay", "0"]
        assert main(["crawl", *line, "-o", str(tmp_path / "c"), "--page-requisites", "--json"]) == 0
        outcomes = json.loads(capsys.readouterr().out.splitlines()[-1])["outcomes"]
    assert set(outcomes) <= {"ok", "redirect"}, outcomes
    with Database(tmp_path / "c") as database:
        read = {path for (path,) in database.ask("SELECT url FROM pages WHERE outcome = 'ok'")}
    for name in ("tutorial", "recipes", "spiders", "reference/options", "decisions/README", "design/promises"):
        assert any(url.endswith(f"/{__version__}/docs/{name}.html") for url in read), f"no link leads to {name}"
    shown = {
        path: found for path in files if path.suffix == ".html" for found in SHOWN.findall(path.read_text("utf-8"))
    }
    assert not shown, "a page shows something from elsewhere"


def test_a_site_leads_to_its_other_versions(tmp_path: Path) -> None:
    (tmp_path / "0.0.9").mkdir()
    (tmp_path / "0.0.9/index.html").write_text("old")
    listed = site.versions(tmp_path)
    assert f'href="{__version__}/docs/index.html"' in listed
    assert 'href="0.0.9/index.html"' in listed

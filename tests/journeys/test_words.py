"""Words of a crawl: Markdown, chunks and PDF, as a person and a program take them out."""

import fcntl
import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from gossamer.analysis.mirror import mirror_names
from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.words.exporting import write_chunks, write_markdown

PROSE = (
    "The committee has decided that the old bridge over the river will be replaced by a new one in the coming year. "
    * 3
)
MENU = "".join(f'<li><a href="/menu{number}">menu entry {number}</a>' for number in range(9))


def page(title: str, inner: str) -> str:
    return (
        f"<html lang=en><title>{title}</title><meta name=author content='J. Doe'><meta property='article:published_time' "
        f"content='2026-03-01'><body><ul class=menu>{MENU}</ul><main><h1 id=top>{title}</h1>{inner}</main>"
    )


def pdf(text: str, link: str) -> bytes:
    """A document of one page, small and right."""
    content = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 200]/Contents 4 0 R/Annots[6 0 R]/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (%s) >> >>" % link.encode(),
        b"<< /Title (A paper) /Author (A. Writer) /CreationDate (D:20250101) >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer << /Size %d /Root 1 0 R /Info 7 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table)


def site() -> "dict[str, str | FakePage]":
    code = '<pre class="highlight-python"><code class="language-python">x = 1\n  y</code></pre>'
    return {
        "/": page(
            "Home", f"<p>{PROSE}<h2 id=more>More</h2><p>{PROSE}<a href='guide/'>guide</a> <a href=/paper>paper</a>"
        ),
        "/guide/": page("Guide", f"<p>{PROSE}{code}<table><tr><th>a<th>b<tr><td>1<td>2</table>"),
        "/paper": FakePage(pdf("Bridges of wood and stone", "http://127.0.0.1:1/x"), type="application/pdf"),
        "/broken.pdf": FakePage(b"%PDF-1.4\nnothing", type="application/pdf"),
        **{f"/menu{number}": FakePage("gone", status=404) for number in range(9)},
    }


def crawled(web: FakeWeb, directory: Path, *options: str) -> None:
    arguments = [
        "crawl",
        web.url("/"),
        web.url("/broken.pdf"),
        "-o",
        str(directory),
        "--delay",
        "0",
        "--quiet",
        *options,
    ]
    assert main(arguments) == 0


def test_a_crawl_becomes_files_of_markdown_without_menus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeWeb(site()) as web:
        crawled(web, tmp_path / "c")
        port = web.url("/").rstrip("/").rpartition(":")[2]
    assert main(["export", str(tmp_path / "c"), "--to", "markdown", "-o", str(tmp_path / "m")]) == 0
    told = capsys.readouterr()
    assert "wrote 3 pages" in told.out + told.err and "1 document: damaged PDF: http://127.0.0.1:" in told.err
    files = {str(path.relative_to(tmp_path / "m")) for path in (tmp_path / "m").rglob("*.md")}
    folder = f"127.0.0.1+{port}"
    assert files == {f"{folder}/index.html.md", f"{folder}/guide/index.html.md", f"{folder}/paper.pdf.md"}
    guide = (tmp_path / "m" / folder / "guide/index.html.md").read_text()
    assert guide.startswith('---\ntitle: "Guide"\nurl: "http://127.0.0.1:') and 'author: "J. Doe"' in guide
    assert "# Guide" in guide and "```python\nx = 1\n  y\n```" in guide and "| a | b |" in guide
    assert "menu entry" not in guide
    home = (tmp_path / "m" / folder / "index.html.md").read_text()
    assert f"[guide](http://127.0.0.1:{port}/guide/)" in home
    paper = (tmp_path / "m" / folder / "paper.pdf.md").read_text()
    assert 'title: "A paper"' in paper and "Bridges of wood and stone" in paper and 'published: "2025-01-01"' in paper
    assert main(["export", str(tmp_path / "c"), "--to", "markdown", "-o", str(tmp_path / "m.jsonl")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert [line["title"] for line in lines] == ["Home", "Guide", "A paper"]


def test_pages_that_a_crawl_brings_during_an_export_wait_for_the_next_one(tmp_path: Path) -> None:
    with FakeWeb(site()) as web:
        crawled(web, tmp_path / "c")
    done = write_markdown(tmp_path / "c", tmp_path / "m", lambda pages: mirror_names(list(pages)[1:]))
    assert done.pages == 2 and len(list((tmp_path / "m").rglob("*.md"))) == 2


@pytest.mark.parametrize("form", ["markdown", "chunks"])
def test_documents_that_were_not_archived_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    with FakeWeb(site()) as web:
        crawled(web, tmp_path / "c", "--no-warc")
    assert main(["export", str(tmp_path / "c"), "--to", form, "-o", str(tmp_path / "m.jsonl")]) == 0
    assert "4 documents: no body in the archive" in capsys.readouterr().err


def test_one_document_is_written_as_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeWeb(site()) as web:
        crawled(web, tmp_path / "c")
        capsys.readouterr()
        assert main(["inspect", "--markdown", web.url("/guide/")]) == 0
        seen = capsys.readouterr().out
        assert main(["cat", str(tmp_path / "c"), web.url("/guide/"), "--markdown"]) == 0
        assert capsys.readouterr().out == seen and seen.startswith("# Guide")
        assert main(["cat", str(tmp_path / "c"), web.url("/paper"), "--markdown"]) == 0
        assert capsys.readouterr().out == "Bridges of wood and stone\n"
        assert main(["cat", str(tmp_path / "c"), web.url("/broken.pdf"), "--markdown"]) == 0
        told = capsys.readouterr()
        assert told.out == "" and "damaged PDF" in told.err
        assert main(["cat", str(tmp_path / "c"), web.url("/"), "--markdown", "--raw"]) == 2


def test_chunks_since_a_mark_lead_from_the_export_then_to_the_one_now(tmp_path: Path) -> None:
    directory, before, changes, now = (
        tmp_path / name for name in ("c", "before.jsonl", "changes.jsonl", "now.parquet")
    )
    pages = site()
    with FakeWeb(pages) as web:
        crawled(web, directory, "--recrawl", "every=1s", "--min-interval", "1s", "--linger", "0s")
        program = [sys.executable, "-P", "-m", "gossamer", "export", str(directory), "--to", "chunks"]
        done = subprocess.run([*program, "-o", str(before)], capture_output=True, text=True, check=True)
        mark = done.stderr.split("--since ")[1].strip()
        web.pages["/"] = page("Home", f"<p>{PROSE}<h2 id=more>More</h2><p>Changed. {PROSE}<h2>New</h2><p>{PROSE}")
        web.pages["/guide/"] = FakePage("gone", status=410)
        assert main(["resume", str(directory), "--quiet", "--linger", "2s", "--max-time", "3s"]) == 0
    subprocess.run([*program, "-o", str(changes), "--since", mark], capture_output=True, check=True)
    subprocess.run([*program, "-o", str(now)], capture_output=True, check=True)
    has = {row["id"] for row in map(json.loads, before.read_text().splitlines())}
    kinds: dict[str, int] = {}
    for row in map(json.loads, changes.read_text().splitlines()):
        kinds[row["change"]] = kinds.get(row["change"], 0) + 1
        if row["change"] == "gone":
            has.remove(row["id"])
        else:
            has.discard(row["replaces"])
            has.add(row["id"])
    assert has == {id_ for (id_,) in duckdb.sql(f"SELECT id FROM '{now}'").fetchall()}
    assert kinds == {"new": 1, "changed": 1, "gone": 1}
    [first] = duckdb.sql(f"SELECT headings, anchor, published FROM '{now}' WHERE text LIKE 'Changed%'").fetchall()
    assert first == (["Home", "More"], "more", "2026-03-01")


def test_the_mark_of_a_crawl_at_work_lies_before_what_may_still_come(tmp_path: Path) -> None:
    with FakeWeb(site()) as web:
        crawled(web, tmp_path / "c")
    marks = []
    with (tmp_path / "c" / "state" / "agent-00" / "lock").open("rb") as lock:
        for hold in (fcntl.LOCK_UN, fcntl.LOCK_EX):
            fcntl.flock(lock, hold)
            marks.append(datetime.fromisoformat(write_chunks(tmp_path / "c", tmp_path / "out.jsonl").mark))
    assert marks[0] - marks[1] == timedelta(minutes=10)


def test_links_of_pdf_are_followed_by_choice(tmp_path: Path) -> None:
    with FakeWeb({"/": "<a href=/paper>paper</a>", "/next": "<p>here</p>"}) as web:
        web.pages["/paper"] = FakePage(pdf("Text", web.url("/next")), type="application/pdf")
        crawled(web, tmp_path / "c")
        assert "/next" not in {request.target for request in web.requests}
        crawled(web, tmp_path / "d", "--follow-pdf")
        assert "/next" in {request.target for request in web.requests}


def test_pages_of_llms_txt_are_seeds_by_choice(tmp_path: Path) -> None:
    listed = "# Site\n\n> About.\n\n## Docs\n- [One](/one.md): first\n- [Two](<two>)\n- [Out](http://elsewhere.test/)\n"
    pages = {"/": "<p>home", "/llms.txt": FakePage(listed, type="text/plain"), "/one.md": "<p>one", "/two": "<p>two"}
    with FakeWeb(pages) as web:
        assert main(["crawl", web.url("/"), "-o", str(tmp_path / "c"), "--delay", "0", "--quiet", "--llms-txt"]) == 0
        assert {request.target for request in web.requests} - {"/robots.txt"} == {"/", "/llms.txt", "/one.md", "/two"}


def test_words_of_pages_are_columns_by_choice_now_and_of_what_was_archived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, later = tmp_path / "c", tmp_path / "d"
    with FakeWeb(site()) as web:
        crawled(web, kept, "--keep-words", "facts", "--keep-words", "markdown")
        crawled(web, later)
        guide = web.url("/guide/")
    assert main(["reprocess", str(later), "--processor", "words", "--processor", "application/pdf=words"]) == 0
    for directory in (kept, later):
        capsys.readouterr()
        sql = "SELECT title, author, published, language, markdown FROM item.words ORDER BY title"
        assert main(["query", str(directory), sql, "-f", "jsonl"]) == 0
        rows = {row["title"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
        assert {*rows} == {"A paper", "Guide", "Home"}
        assert (rows["Guide"]["author"], rows["Guide"]["published"], rows["Guide"]["language"]) == (
            "J. Doe",
            "2026-03-01",
            "en",
        )
        assert "```python" in rows["Guide"]["markdown"] and rows["A paper"]["markdown"] == "Bridges of wood and stone\n"
    assert main(["query", str(later), f"SELECT text FROM item.words WHERE url = '{guide}'", "-f", "csv"]) == 0
    assert "committee has decided" in capsys.readouterr().out
    assert main(["query", str(kept), "SELECT text FROM item.words"]) != 0


def test_text_of_pdf_is_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeWeb(site()) as web:
        crawled(web, tmp_path / "c")
        crawled(web, tmp_path / "d", "--index")
        paper = web.url("/paper")
    assert main(["index", str(tmp_path / "c")]) == 0
    assert "1 document: damaged PDF" in capsys.readouterr().err
    for directory in ("c", "d"):
        assert main(["search", str(tmp_path / directory), "bridges stone", "--json"]) == 0
        [hit] = json.loads(capsys.readouterr().out)["hits"]
        assert (hit["url"], hit["title"]) == (paper, "A paper")

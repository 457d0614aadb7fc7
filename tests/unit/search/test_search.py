"""The full-text index holds the latest documents, is asked in words, phrases and filters, and says when it is not sound."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tantivy

from gossamer.cli.main import main
from gossamer.crawls.compiling import shipped
from gossamer.engine.wiring import with_settings, write
from gossamer.query.contract import has_index, index_path
from gossamer.query.database import Database
from gossamer.query.feeds import Feed
from gossamer.query.ranking import rank_crawl
from gossamer.search.asking import Search, SearchFilters, type_iris
from gossamer.search.index import SearchIndex, open_index, parents, remove_index
from gossamer.search.indexing import index_crawl
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Link, Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]

PROSE = "Many spiders are crawling over the web and they weave it from one corner of the barn to the next one every single day. "


def body(text: str) -> bytes:
    return f"<html><head><title>t</title></head><body><p>{PROSE}{text}</p></body></html>".encode()


def at(one: Visit, seconds: float) -> Visit:
    return msgspec.structs.replace(one, response=msgspec.structs.replace(one.response, started=seconds))


def commit(stores: Any, *visits: Visit) -> None:
    """One group, and the word that it is kept."""
    stores.commit(*visits)
    stores.rows.committed(stores.rows.ends())


def found(directory: Path, words: str, **filters: Any) -> list[str]:
    return sorted(hit.url for hit in Search(directory).ask(words, SearchFilters(**filters)).hits)


@pytest.fixture
def crawl(kept: Open, page: Make) -> Path:
    stores = kept(tables=("pages", "links", "items", "triples"))
    product = (
        ("http://a.test/2#p", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "https://schema.org/Product", "", ""),
    )
    commit(
        stores,
        page(
            1,
            body("The quick brown fox jumps."),
            id="v1",
            title="Animals",
            language="en",
            links=(Link("http://a.test/2", anchor="zebra crossing"),),
        ),
        page(2, body("A lazy dog sleeps."), id="v2", title="Dogs", language="en", links=(), triples=product),
        page(3, body("全文検索エンジンを作る。"), id="v3", title="検索", language="ja", links=()),
        page(4, body("Die Häuser sind rot."), id="v4", title="Bauten", language="de", links=()),
    )
    directory: Path = stores.directory
    index_crawl(directory)
    return directory


def url(number: int) -> str:
    return f"http://a.test/{number}"


def test_words_are_found_in_titles_texts_and_by_their_stems(crawl: Path) -> None:
    assert found(crawl, "fox") == [url(1)]
    assert found(crawl, "dogs") == [url(2)]
    assert found(crawl, "jumping") == [url(1)]
    assert found(crawl, "haus rot") == [url(4)]
    assert found(crawl, "hauser") == [url(4)]
    assert found(crawl, "fox dog") == []
    assert found(crawl, "fox OR dog") == [url(1), url(2)]


def test_phrases_are_found_in_their_order_alone(crawl: Path) -> None:
    assert found(crawl, '"brown fox"') == [url(1)]
    assert found(crawl, '"fox brown"') == []


def test_words_of_scripts_without_spaces_are_found_within_sentences(crawl: Path) -> None:
    assert found(crawl, "検索") == [url(3)]
    assert found(crawl, "エンジン") == [url(3)]
    assert found(crawl, "索検") == []


def test_filters_hold_beside_words_and_without(crawl: Path) -> None:
    assert found(crawl, "spiders", languages=("de", "ja")) == [url(3), url(4)]
    assert found(crawl, "", hosts=("a.test",)) == [url(number) for number in (1, 2, 3, 4)]
    assert found(crawl, "", hosts=("b.test",)) == []
    assert found(crawl, "", types=("schema:Product",)) == [url(2)]
    assert found(crawl, "dog", without_types=("schema:Product",)) == []
    assert found(crawl, "", depth=0) + found(crawl, "spiders", depth=9) == [
        url(number) for number in (1, 2, 3, 4)
    ] or found(crawl, "", depth=9)


def test_dates_are_filters(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["search", str(crawl), "", "--since", "2023-11-14T22:13:22", "--until", "2023-11-14T22:13:24", "--json"])
        == 0
    )
    hits = msgspec.json.decode(capsys.readouterr().out)["hits"]
    assert sorted(hit["url"] for hit in hits) == [url(2), url(3)]
    assert main(["search", str(crawl), "", "--since", "soon"]) == 2
    assert "write a time" in capsys.readouterr().err


def test_texts_of_links_find_the_page_that_they_lead_to(crawl: Path) -> None:
    assert found(crawl, "zebra") == [url(2)]


def test_snippets_show_the_words_where_they_stand(crawl: Path) -> None:
    for words, wanted in (("jumping", {"jumps"}), ("検索", {"検索"}), ('"brown fox"', {"brown", "fox"})):
        [hit] = Search(crawl).ask(words).hits
        assert {hit.snippet[start:end] for start, end in hit.marks} == wanted


def test_facets_count_all_that_was_found(crawl: Path) -> None:
    answer = Search(crawl).ask("spiders", most=1, facets=("host", "language"))
    assert answer.total == 4 and len(answer.hits) == 1
    assert answer.facets == {"host": {"a.test": 4}, "language": {"en": 2, "de": 1, "ja": 1}}


def test_ranks_lift_pages_that_are_linked(crawl: Path) -> None:
    before = {hit.url: hit.score for hit in Search(crawl).ask("spiders").hits}
    rank_crawl(crawl)
    assert index_crawl(crawl).extras > 0
    after = {hit.url: hit.score for hit in Search(crawl).ask("spiders").hits}
    assert after[url(2)] > before[url(2)]
    assert index_crawl(crawl).extras == 0


def test_a_page_that_changed_is_replaced_and_one_that_is_gone_leaves(crawl: Path, kept: Open, page: Make) -> None:
    gone = page(2, id="v6")
    gone = msgspec.structs.replace(
        gone, response=msgspec.structs.replace(gone.response, outcome=Outcome.CLIENT_ERROR, status=404)
    )
    unchanged = page(3, id="v7")
    unchanged = msgspec.structs.replace(
        unchanged, response=msgspec.structs.replace(unchanged.response, outcome=Outcome.NOT_MODIFIED, status=304)
    )
    commit(
        kept(tables=("pages", "links", "items", "triples")),
        at(page(1, body("A slow green turtle."), id="v5", title="Reptiles", language="en"), 1.8e9),
        at(gone, 1.8e9),
        at(unchanged, 1.8e9),
    )
    done = index_crawl(crawl)
    assert done.visits == 3
    assert (found(crawl, "fox"), found(crawl, "turtle"), found(crawl, "dog"), found(crawl, "検索")) == (
        [],
        [url(1)],
        [],
        [url(3)],
    )


def test_what_may_not_be_kept_is_not_indexed(kept: Open, page: Make) -> None:
    stores = kept()
    commit(
        stores,
        page(1, body("secret fox"), directives=("noarchive",)),
        page(2, body("plain fox"), discarded="language:en"),
    )
    index_crawl(stores.directory)
    assert found(stores.directory, "fox") == []


def test_the_index_agrees_with_the_tables_after_rows_are_made_anew(crawl: Path) -> None:
    assert index_crawl(crawl, anew=True).documents == 4
    assert found(crawl, "fox") == [url(1)]


@pytest.mark.parametrize(
    "words", ["foo:bar", "(", "AND", '"', "http://x.test/", "title:", "x" * 3_000, "\x00", "[a TO", "~", "^^", "*"]
)
def test_no_question_brings_more_than_one_line(crawl: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["search", str(crawl), words])
    said = capsys.readouterr().err
    assert (status, said) == (0, "") or (status == 2 and said.count("\n") == 1)


def test_hostile_titles_reach_no_terminal(kept: Open, page: Make, capsys: pytest.CaptureFixture[str]) -> None:
    stores = kept()
    commit(stores, page(1, body("fox \x1b[2J\u202e"), title="\x1b]0;owned\x07 fox"))
    index_crawl(stores.directory)
    assert main(["search", str(stores.directory), "fox"]) == 0
    out = capsys.readouterr().out
    assert "1 documents" in out and "\x1b" not in out and "\x07" not in out and "\u202e" not in out


def test_a_hostile_question_cannot_speak_to_the_terminal(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", str(crawl)]) == 0
    capsys.readouterr()
    assert main(["search", str(crawl), "\x1b[31mfox\u202e ("]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and r"\x1b[31mfox\u202e (" in said
    assert "\x1b" not in said and "\u202e" not in said


def test_no_index_another_version_and_a_damaged_one_are_told_in_one_line(
    crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(status: int, *words: str) -> None:
        assert main(["search", str(crawl), "fox"]) == status
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and all(word in said for word in words)

    note = index_path(crawl) / "gossamer.json"
    note.write_text('{"format": 0}', encoding="utf-8")
    refused(2, "another version", "--overwrite")
    assert main(["index", str(crawl)]) == 2
    capsys.readouterr()
    note.write_text("{", encoding="utf-8")
    refused(5, "damaged")
    shutil.rmtree(index_path(crawl))
    refused(2, "has no index", "gossamer index")
    assert main(["index", str(crawl), "--overwrite"]) == 0
    (index_path(crawl) / "meta.json").write_text("{", encoding="utf-8")
    capsys.readouterr()
    refused(5, "damaged")


MENU = b"<nav>Imprint</nav><pre>frobnicate(3)</pre>"


def test_menus_and_code_are_found_where_all_text_is_indexed(
    kept: Open, page: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    stores = kept()
    commit(stores, page(1, body("fox") + MENU, id="v1"))
    directory = stores.directory
    index_crawl(directory)
    assert found(directory, "fox") == [url(1)] and found(directory, "frobnicate OR imprint") == []
    assert main(["index", str(directory), "--text", "all"]) == 2
    assert "--overwrite --text all" in capsys.readouterr().err
    index_crawl(directory, anew=True, text="all")
    assert found(directory, "frobnicate") == found(directory, "imprint") == found(directory, "fox") == [url(1)]
    commit(stores, page(2, body("hen") + MENU, id="v2"))
    index_crawl(directory)
    assert found(directory, "imprint") == [url(1), url(2)], "an index goes on as it began"


def test_the_index_of_a_crawl_has_the_texts_that_the_crawl_chose(kept: Open, page: Make) -> None:
    stores = kept()
    wiring = with_settings(shipped("default"), "process", {"text": "all"})
    write(stores.directory / CRAWL_FILE, wiring)
    commit(stores, page(1, body("fox") + MENU, id="v1"))
    index_crawl(stores.directory)
    assert found(stores.directory, "imprint") == [url(1)]


def test_the_forward_index_agrees_with_the_inverted_one(crawl: Path) -> None:
    assert index_crawl(crawl, terms=True).terms
    with Database(crawl) as database:
        rows = [(url, term, count) for url, term, count in database.ask("SELECT url, term, count FROM terms")]
    assert (url(1), "fox", 1) in rows and (url(3), "検", 2) in rows
    assert len({row[:2] for row in rows}) == len(rows)
    index = open_index(crawl)
    searcher = index.searcher()
    urls: dict[str, set[str]] = {}
    for where, term, _ in rows:
        urls.setdefault(term, set()).add(where)
    for term, documents in urls.items():
        fields = [tantivy.Query.term_query(index.schema, name, term) for name in ("text", "title", "cjk")]
        asked = tantivy.Query.boolean_query([(tantivy.Occur.Should, one) for one in fields])
        hits = searcher.search(asked, 100).hits
        assert {searcher.doc(place).get_first("url") for _, place in hits} == documents, term
    for term, _ in searcher.terms_with_prefix("text", ""):
        assert term in urls, "the index has a term that the table lacks"


def test_an_index_that_is_in_use_is_told_in_one_line(crawl: Path) -> None:
    index = SearchIndex(crawl, NoTexts())
    with pytest.raises(CrawlDirectoryError, match="in use"):
        SearchIndex(crawl, NoTexts())
    index.close()


def test_an_index_that_was_removed_is_made_again_from_every_visit(crawl: Path) -> None:
    remove_index(crawl)
    assert not has_index(crawl)
    with pytest.raises(UsageError):
        open_index(crawl)
    assert index_crawl(crawl).documents == 4


class NoTexts:
    """Gives the title as text."""

    remarks: Sequence[str] = ()

    def text(self, row: Mapping[str, Any]) -> tuple[str, str]:
        return str(row["title"]), str(row["title"])

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.long
def test_the_index_keeps_the_promises_of_a_consumer(tmp_path: Path) -> None:
    """In a process of its own, which has no threads: tantivy's do not live on in children, and the check kills children."""
    script = Path(__file__).with_name("index_promises.py")
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert "promises are kept" in done.stdout


def test_the_index_that_follows_a_crawl_has_its_documents(kept: Open, page: Make) -> None:
    stores = kept()
    commit(stores, page(1, body("fox"), id="v1"))
    index = SearchIndex(stores.directory, NoTexts())
    feed = Feed(stores.directory, index.table)
    assert feed.give(index) == 1 and feed.give(index) == 0
    commit(stores, page(2, body("fox"), id="v2"))
    assert feed.give(index) == 1
    index.close()


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("www.example.org", ["www.example.org", "example.org"]),
        ("localhost", ["localhost"]),
        ("127.0.0.1", ["127.0.0.1"]),
        ("::1", ["::1"]),
        ("", [""]),
    ],
)
def test_a_host_is_found_by_the_names_above_it(host: str, names: list[str]) -> None:
    assert parents(host) == names


def test_types_are_named_as_people_write_them() -> None:
    assert type_iris("foaf:Person") == ["http://xmlns.com/foaf/0.1/Person"]
    assert (
        type_iris("Product")
        == type_iris("schema:Product")
        == ["http://schema.org/Product", "https://schema.org/Product"]
    )
    assert type_iris("http://a.test/T") == ["http://a.test/T"]


def test_an_index_says_of_how_many_texts_it_has_the_beginning_alone(kept: Open, page: Make) -> None:
    stores = kept(tables=("pages", "links", "items", "triples"))
    commit(stores, page(1, body("short"), id="v1"), page(2, body(PROSE * 1_000 + "hippopotamus"), id="v2"))
    done = index_crawl(stores.directory)
    assert (done.documents, done.cut) == (2, 1)
    assert "first 100,000 characters of 1 text" in done.remarks[0]
    assert found(stores.directory, "hippopotamus") == []

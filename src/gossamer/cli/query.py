"""Questions to a crawl: `gossamer query` in SQL, `report` ready-made, `rank` for PageRank, `why` and `cat` of one URL."""

import datetime
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from gossamer.cli.helping import (
    as_json,
    crawl_to_read,
    digits_of,
    in_form,
    opened,
    option,
    raw_cells,
    tell_damage,
    to_file,
)
from gossamer.cli.saying import say_bytes, say_json, say_lines, tell
from gossamer.engine.sheet import nearest
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.analysis.traces import Story
    from gossamer.query.database import Database
    from gossamer.query.reports import MadeReport
    from gossamer.storage.archive.reading import ArchivedRecord

#: An empty answer would look like a page without links.
_NO_LINKS = (
    "the table links has no rows: the crawl found no links, or does not keep them, "
    """because its setting log.tables leaves out "links\""""
)


@click.command(name="query")
@crawl_to_read
@click.argument("sql", metavar="SQL")
@in_form(("table", "csv", "jsonl", "parquet"), "Write the answer in this format.")
@to_file
@raw_cells
def query(directory: str, sql: str, form: str, output: str | None, raw: bool) -> int:
    """Ask the tables of the crawl in DIR one question in SQL (DuckDB's), also while it runs.

    There are the tables pages, links, hosts, items, and others that the crawl kept; docs/reference/tables.md lists
    their columns. They show the latest visit of each URL; pages_all, links_all and items_all show every visit. The
    command names damaged files, leaves them out, and exits with 5. If SQL is `-`, it is read from standard input. A
    query can read only these tables, no other file and no network.

    \b
    gossamer query crawl "SELECT outcome, count(*) FROM pages GROUP BY 1 ORDER BY 2 DESC"
    gossamer query crawl "SELECT target, count(*) FROM links GROUP BY 1 ORDER BY 2 DESC LIMIT 20"
    gossamer query crawl "DESCRIBE pages"
    """
    from gossamer.query.convert import convert
    from gossamer.query.database import Database
    from gossamer.query.printing import write_rows
    from gossamer.storage.tables.places import crawl_directory

    place = crawl_directory(directory)
    question = sys.stdin.read() if sql == "-" else sql
    convert(place)
    with Database(place) as database:
        if form == "parquet":
            _parquet(database, question, output)
        else:
            answer = database.ask(question)
            with opened(output) as out:
                write_rows(form, answer.columns, answer, out, types=answer.types, raw=raw)
        damaged = database.damage_to(question)
        if not damaged and "links" in database.without_rows and re.search(r"\blinks(_all)?\b", question, re.IGNORECASE):
            tell(_NO_LINKS)
        return tell_damage(damaged)


def _parquet(database: "Database", question: str, output: str | None) -> None:
    from gossamer.engine.files import scratch

    if output:
        database.write_parquet(question, Path(output))
        return
    if sys.stdout.isatty():
        raise UsageError("Parquet is not for a terminal; name a file with -o, or pipe it")
    with scratch() as folder:
        path = Path(folder, "answer.parquet")
        database.write_parquet(question, path)
        with path.open("rb") as file, opened(None) as out:
            shutil.copyfileobj(file, out.buffer)


#: The exit status of a report that found what `--fail-on` names: link checkers end with it, and no other command of ours.
FOUND = 1

#: Rows of a table that a terminal or a page shows where `--limit` does not say.
SHOWN = 20
IN_A_PAGE = 200


@click.command()
@crawl_to_read
@click.argument("names", metavar="[NAME]...", nargs=-1)
@in_form(
    ("table", "csv", "jsonl", "html"),
    "Write the report in this format; CSV and JSON lines hold the whole of its first table.",
)
@to_file
@option(
    "--limit",
    "Show at most this many rows of each table [default: 20, in HTML 200; 0 for all].",
    type=click.IntRange(0, 1_000_000_000),
)
@option(
    "--fail-on fail_on NAME...",
    "Exit with 1 if this report has rows: broken, errors, duplicates, redirects or traps (repeatable).",
)
def report(
    directory: str, names: tuple[str, ...], form: str, output: str | None, limit: int | None, fail_on: tuple[str, ...]
) -> int:
    """Report on the crawl in DIR, while it runs or after. Without NAME, list the reports; `all` makes every one.

    \b
    gossamer report mycrawl broken
    gossamer report mycrawl broken --fail-on broken -f csv -o broken.csv
    gossamer report mycrawl all -f html -o report.html
    """
    from gossamer.query.convert import convert
    from gossamer.query.database import Database
    from gossamer.query.reports import REPORTS, TROUBLES, report_names, report_of
    from gossamer.storage.tables.places import crawl_directory

    if names and (directory in REPORTS or directory == "all") and not Path(directory).exists():
        raise UsageError(f"the directory comes first: gossamer report {names[0]} {directory}")
    place = crawl_directory(directory)
    if not names and not fail_on:
        for known, spec in REPORTS.items():
            print(f"{known:<16} {spec.doc}")
        return 0
    for name in fail_on:
        if name not in TROUBLES:
            raise UsageError(f"--fail-on {name}: name a report that lists trouble{nearest(name, TROUBLES)}")
    asked = report_names(names or fail_on)
    if form in ("csv", "jsonl") and len(asked) > 1:
        raise UsageError(f"{form} holds one report; name one, or write HTML with -f html")
    whole = form in ("csv", "jsonl")
    most = None if whole or limit == 0 else limit or (IN_A_PAGE if form == "html" else SHOWN)
    convert(place)
    with Database(place) as database:
        # CSV and JSON lines hold the first section, and the exit status goes by it.
        made = {name: report_of(place, database, name, most, 1 if whole else None) for name in asked}
        judged = {name: made.get(name) or report_of(place, database, name, 0, 1) for name in fail_on}
        with opened(output) as out:
            _write(list(made.values()), form, directory, out)
        status = tell_damage(database.damaged)
    found = {name: one.sections[0].total for name, one in judged.items() if one.sections[0].total}
    if found:
        tell(f"--fail-on: {', '.join(f'{name} has {count:,} rows' for name, count in found.items())}")
    return status or (FOUND if found else 0)


def _write(made: "Sequence[MadeReport]", form: str, directory: str, out: TextIO) -> None:
    from gossamer.query.printing import write_rows

    if form == "html":
        from gossamer.query.printing import page_of

        when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        out.write(page_of(made, Path(directory).name or directory, when))
    elif form in ("csv", "jsonl"):
        first = made[0].sections[0]
        write_rows(form, first.columns, first.rows, out, types=first.types)
    else:
        for report_ in made:
            _as_text(report_, out)


def _as_text(made: "MadeReport", out: TextIO) -> None:
    from gossamer.query.printing import write_table

    for section in made.sections:
        out.write(f"{section.title}\n\n")
        if section.rows:
            write_table(section.columns, section.rows, out)
            if "anchor" in section.columns and not any(row[section.columns.index("anchor")] for row in section.rows):
                out.write("\nThe texts of links are missing: a crawl with --analysis full keeps them.\n")
        else:
            out.write("none\n")
        left = section.total - len(section.rows)
        out.write(f"and {left:,} more\n\n" if left else "\n")


# `gossamer rank`: PageRank of a crawl's links, as tables, and as a file by which another crawl knows what is important.

#: URLs that the file of `--importance` names at most: a crawl that reads it holds them in memory, 150 bytes each.
MOST_URLS = 100_000


@click.command()
@click.argument("directory", metavar="DIR")
@option(
    "--importance FILE",
    "Also write hosts and URLs with their importance from 0 to 1 to this file, for --set prioritizer.importance=FILE.",
)
@option(
    "--urls",
    "Write at most this many URLs to that file, the highest first.",
    type=click.IntRange(0, 1_000_000),
    default=MOST_URLS,
    show_default=True,
)
@option(
    "--limit",
    "Show at most this many URLs and hosts.",
    type=click.IntRange(0, 1_000_000),
    default=20,
    show_default=True,
)
def rank(directory: str, importance: str | None, urls: int, limit: int) -> None:
    """Rank the URLs and hosts of the crawl in DIR by the links that lead to them (PageRank).

    It adds the tables `ranks` (url, host, rank, importance, links_in, links_out) and `host_ranks` (host, rank,
    site_rank, importance, hosts_in, urls). A host's `rank` is the sum of its URLs' ranks; its `importance` follows from
    `site_rank`, which counts only links between hosts. Ranks add up to 1. Links marked nofollow, of a page to itself,
    and to pictures, scripts and styles do not count.

    \b
    gossamer rank mycrawl
    gossamer query mycrawl "SELECT url, rank FROM ranks WHERE host = 'example.org' ORDER BY rank DESC LIMIT 10"
    gossamer rank mycrawl --importance ranks.txt
    gossamer crawl https://example.org/ --set prioritizer.importance=ranks.txt
    """
    from gossamer.query.convert import convert
    from gossamer.query.database import Database
    from gossamer.query.printing import write_table
    from gossamer.query.ranking import importance_lines, rank_crawl
    from gossamer.storage.tables.places import crawl_directory

    place = crawl_directory(directory)
    convert(place)
    url_count, link_count, rounds = rank_crawl(place)
    if importance is not None:
        with opened(importance) as out:
            out.writelines(importance_lines(place, urls))
    with Database(place) as database, opened(None) as out:
        out.write(f"{url_count:,} URLs, {link_count:,} links, {rounds} rounds\n\n")
        for table, name in (("ranks", "url"), ("host_ranks", "host")):
            answer = database.ask(
                f"SELECT {name}, rank, importance FROM {table} ORDER BY rank DESC, {name} LIMIT {limit}"
            )
            write_table(answer.columns, [(one, f"{rank:.3e}", f"{value:.3f}") for one, rank, value in answer], out)
            out.write("\n")


# `gossamer why` and `cat`: the story of one URL, told from ledger, log, filters and robots rules; a document.


@click.command()
@crawl_to_read
@click.argument("url")
@as_json
def why(directory: str, url: str, as_json: bool) -> None:
    """Tell the story of one URL: why it was fetched, or why not.

    It shows the canonical form, where the URL was discovered, the judgements of filters and robots.txt, the visits, and
    the record in the archive. It works while the crawl runs, and after. Filters and robots.txt judge by their present
    rules.
    """
    from gossamer.analysis.why import story_of

    story = story_of(Path(directory), url)
    say_json(story) if as_json else say_lines(story_lines(story))


#: States of a site's robots.txt for people.
_ROBOTS = {
    "": "not asked for",
    "new": "not asked for",
    "qualified": "known",
    "unreachable": "out of reach",
    "disqualified": "out of reach for good",
    "shared": "known from another crawl",
}


def story_lines(story: "Story") -> list[str]:
    lines = [f"{story.url}: {story.told}"]
    lines += [f"canonical:  {one.part} {one.given!r} is written {one.canonical!r}" for one in story.normalised]
    if story.depth is not None and story.relation:
        found = f"{story.relation} of {story.discovered_from}" if story.discovered_from else story.relation
        by = f", by {story.found_by}" if story.found_by else ""
        lines.append(f"discovered: {found}, depth {story.depth}{by}")
    refusing = [one for one in story.filters if one.verdict]
    lines += [f"filter:     {one.filter} ({one.gate}): {one.verdict}" for one in refusing]
    if story.filters and not refusing:
        lines.append("filter:     no filter keeps it out")
    if story.blocked_by:
        lines.append(f"blocked:    by {story.blocked_by}")
    if story.robots is not None:
        where = f" (line {story.robots.line})" if story.robots.line else ""
        lines.append(
            f"robots.txt: {story.robots.ruling}{f' by {story.robots.rule!r}' if story.robots.rule else ''}{where}"
        )
    for visit in story.visits:
        trouble = f": {visit['error']}" if visit.get("error") else ""
        noted = f" (noted: {visit['notes'].replace(' ', ', ')})" if visit.get("notes") else ""
        lines.append(
            f"fetched:    {visit['fetched_at']} try {visit['attempt']}, {visit['outcome']} {visit['status'] or ''} "
            f"{visit['bytes']} bytes in {visit['elapsed_ms']:.0f} ms{trouble}{noted}"
        )
    lines += [f"link:       of {one.page} ({one.relation}): {one.verdict or 'passes'}" for one in story.links]
    if story.redirects:
        lines.append(f"leads to:   {', then '.join(story.redirects)}")
    alike = (("same as:   ", story.duplicate_of), ("nearly:    ", story.near_duplicate_of))
    lines += [f"{word} {url}" for word, url in alike if url]
    if story.record is not None:
        lines.append("record:     {file} at byte {offset}, {length} bytes".format(**story.record))
    if story.host is not None:
        lines.append(
            f"host:       {story.host['host']} ({story.host['ip']}), delay {story.host['delay']:.3g} s"
            f"{' (' + story.host['delay_reason'] + ')' if story.host['delay_reason'] else ''}, "
            f"robots.txt {_ROBOTS.get(story.host['robots_state'], story.host['robots_state'])}"
            + "".join(f", also called {name}" for name in story.host["aliases"])
        )
    return lines


# `gossamer cat`: the archived document of a URL.


@click.command()
@crawl_to_read
@click.argument("url", metavar="URL")
@option("--headers", "Write the answer's status line and header fields, instead of the document.")
@option("--rendered", "Write the page as a browser showed it (crawl --render).")
@option("--raw", "Write the record as it is in the archive, with the body as it came.")
@option("--markdown", "Write the main part of the document as Markdown; this needs the package html-to-markdown.")
@option("--at TIME", "Write the version that was current at this time, as 20260301 (UTC).", default="")
def cat(directory: str, url: str, headers: bool, rendered: bool, raw: bool, markdown: bool, at: str) -> int:
    """Write the archived document of URL in the crawl in DIR to standard output, also while it runs.

    The content coding is undone. If a document was fetched again and had not changed, its first record in the archive
    is read.
    """
    from gossamer.query.archive import ArchiveReader, url_asked
    from gossamer.storage.tables.manifest import damaged_index, read_notes
    from gossamer.storage.tables.places import crawl_directory

    if headers + rendered + raw + markdown > 1:
        raise UsageError("--headers, --rendered, --raw and --markdown write different things of a document: choose one")
    digits = digits_of("--at", at) if at else ""
    wanted = url_asked(url)
    place = crawl_directory(directory)
    notes = read_notes(place)
    if notes is not None and damaged_index(place, notes) is not None:
        from gossamer.query.convert import sound_index  # DuckDB comes with it; only a lost index waits for that

        tell(sound_index(place))
    document = ArchiveReader(place).document(wanted, digits)
    if document.is_kept_out and not (raw or headers):
        from gossamer.analysis.traces import visits_of

        rule = next((row.get("kept_out") for row in reversed(list(visits_of(place, wanted)))), None)
        raise UsageError(
            f"{wanted} was fetched, and its body was kept out of the archive{f': {rule}' if rule else ''}; "
            "--headers writes the header of the answer"
        )
    if markdown:
        from gossamer.words.reading import TROUBLES, archived_words

        words = archived_words(wanted, document)
        if words.trouble:
            tell(f"{wanted}: {TROUBLES[words.trouble]}")
        say_bytes((words.markdown.encode("utf-8", "replace"),))
    elif rendered:
        if document.rendered is None:
            raise UsageError(f"{wanted} was not rendered; a crawl with --render auto or --render always does that")
        say_bytes(_decoded(wanted, document.rendered))
    elif raw:
        say_bytes(document.record.raw())
    else:
        say_bytes((document.record.head,) if headers else _decoded(wanted, document.source))
    return 0


def _decoded(url: str, record: "ArchivedRecord") -> Iterator[bytes]:
    """The document without content coding; as it came, with a word on standard error, where that cannot be undone."""
    from gossamer.documents.content_coding import undone
    from gossamer.values.body import pieces

    found = undone(record.headers, record.body, MOST)
    if not found.is_readable:
        tell(f"{url}: {found.error}; the body is written as it came")
        return pieces(record.body)
    if found.error:
        tell(f"{url}: {found.error}; only the part before the fault is written")
    return pieces(found.data)


#: Most bytes of a decoded document: no page is larger, and a bomb is.
MOST = 1 << 30

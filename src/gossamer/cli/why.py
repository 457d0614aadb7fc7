"""`gossamer why DIR URL`: the story of one URL, told from ledger, log, filters and robots rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.helping import as_json, crawl_to_read, digits_of, option
from gossamer.cli.saying import say_bytes, say_json, say_lines, tell
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.analysis.traces import Story
    from gossamer.crawls.trap_review import Suspicions
    from gossamer.storage.archive.reading import ArchivedRecord


@click.command()
@crawl_to_read(archive=True)
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
    if story.duplicate_of:
        lines.append(f"same as:    {story.duplicate_of}")
    if story.near_duplicate_of:
        lines.append(f"nearly:     {story.near_duplicate_of}")
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


# `gossamer traps DIR`: what was set aside and why; a person confirms a trap or releases what is none.


@click.command()
@click.argument("directory", metavar="DIR")
@option("--confirm ID...", "Refuse this family from now on, because it is a trap (repeatable).")
@option("--release ID|all...", "Never suspect this family again, because it is no trap (repeatable).")
@as_json
def traps(directory: str, confirm: tuple[str, ...], release: tuple[str, ...], as_json: bool) -> None:
    """List the families of URLs that look like traps, with evidence, and hosts with unusually many URLs.

    Such URLs are set aside: they wait behind all others, and the crawl fetches a few of them to see whether they bring
    anything new. --confirm refuses a family from now on, --release lets the crawl fetch it; both work while the crawl
    runs, and also apply to later runs.

    \b
    gossamer traps mycrawl
    gossamer traps mycrawl --confirm 1f0c2ab39d
    gossamer resume mycrawl --release all
    """
    from gossamer.crawls.control.client import Control, NotRunning, check_is_crawl
    from gossamer.crawls.control.messages import Decide
    from gossamer.crawls.trap_review import decide_at_rest, suspicions_of

    path = Path(directory)
    check_is_crawl(path)
    if confirm or release:
        try:
            with Control(path) as control:
                print(control.do(Decide(list(confirm), list(release))))
        except NotRunning:
            decide_at_rest(path, confirm, release)
            print(f"this holds from now on; `gossamer resume {path}` fetches the URLs of released families")
        return
    found = suspicions_of(path)
    say_json(found) if as_json else say_lines(trap_lines(found))


def trap_lines(found: "Suspicions") -> list[str]:
    """What was set aside, for people."""
    lines = []
    for one in found.families:
        lines.append(f"{one.id}  {one.family}: {one.trap}, {one.state}; {one.set_aside} set aside, {one.probes} probed")
        lines.append(f"            {one.evidence}")
        lines += [f"            {url}" for url in one.samples]
    if not found.families:
        lines.append("nothing is set aside")
    if found.hosts:
        lines.append("hosts with unusually many URLs:")
        lines += [f"  {one.host}: {one.urls} URLs, {one.pages} pages" for one in found.hosts]
    return lines


# `gossamer cat`: the archived document of a URL.


@click.command()
@crawl_to_read(archive=True)
@click.argument("url", metavar="URL")
@option("--headers", "Write the answer's status line and header fields, instead of the document.")
@option("--rendered", "Write the page as a browser showed it (crawl --render).")
@option("--raw", "Write the record as it is in the archive, with the body as it came.")
@option("--markdown", "Write the main part of the document as Markdown; this needs gossamer[words].")
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
        from gossamer.query.convert import (
            sound_index,  # DuckDB comes with it, and only who has lost the index waits for that
        )

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

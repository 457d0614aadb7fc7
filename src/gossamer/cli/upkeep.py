"""`gossamer reprocess`: run processors over the stored archive, without a request."""

import time

import click
import msgspec

from gossamer.cli.helping import as_json, crawl_to_read, option
from gossamer.cli.saying import say_json, say_lines, tell
from gossamer.engine.sheet import show_bytes, show_count, show_seconds
from gossamer.values.errors import CrawlDirectoryError

# `gossamer delete DIR URL|HOST|DOMAIN`: take everything of a site or page out of a crawl.


@click.command(epilog="Exit status: 0 it is deleted, 2 wrong usage, 5 the crawl runs, is damaged, or is being read.")
@click.argument("directory", metavar="DIR")
@click.argument("name", metavar="[URL|HOST|DOMAIN]", required=False)
@option("--forget", "Let a later run fetch the URL again when it finds it; otherwise no run ever does.")
@option("--accept-loss", "Go on without files that are lost or damaged, and print a line for each.")
@option("--json as_json", "Print one line of JSON for each deletion.")
def delete(directory: str, name: str | None, forget: bool, accept_loss: bool, as_json: bool) -> int:
    """Delete everything that the crawl in DIR keeps of a URL, or of a host or domain and everything below it.

    It overwrites records of the archive, and removes rows, lines of the log, tasks and index lines.
    `gossamer resume DIR` fetches copies of a deleted document under other URLs again. The crawl must not run. If the
    command is killed, call it again; without a name it finishes the deletion that was begun.
    """
    from gossamer.analysis.removals import delete as delete_from_crawl
    from gossamer.analysis.removals import target_of
    from gossamer.storage.tables.places import crawl_directory

    place = crawl_directory(directory)
    target = target_of(name) if name else None
    done = delete_from_crawl(place, target, time.time(), forget=forget, accept=accept_loss, remark=tell)
    for one in done:
        if as_json:
            say_json(one)
            continue
        if not (one.records or one.documents or one.tasks or one.rows or one.lines):
            say_lines(("nothing of it was in the crawl; `gossamer why` shows the form in which a crawl keeps a URL",))
            continue
        counts = ", ".join(
            (
                show_count(one.records, "record"),
                show_count(one.documents, "document"),
                show_count(one.tasks, "task"),
                show_count(one.rows, "row"),
                show_count(one.lines, "log line"),
            )
        )
        print(f"deleted: {counts}")
        if one.again:
            say_lines(
                (f"{show_count(one.again, 'URL')} had the same document: gossamer resume {directory} fetches it again",)
            )
    return 0


# `gossamer trim DIR --keep-versions N`: keep the newest versions of each page.


@click.command(epilog="Exit status: 0 it is done, 2 wrong usage, 5 the crawl runs, is damaged, or is being read.")
@click.argument("directory", metavar="DIR")
@option(
    "--keep-versions versions N",
    "Keep this many versions of each page; without this option, the command only finishes a trim that was killed.",
    type=click.IntRange(min=1),
)
@option("--accept-loss", "Go on without files that are lost or damaged, and print a line for each.")
@as_json
def trim(directory: str, versions: int | None, accept_loss: bool, as_json: bool) -> int:
    """Drop old versions of pages that the crawl in DIR visited many times.

    The newest N visits of each URL stay, and the newest N that found a document. A record also stays if a visit that
    stays refers to it. Archive files that lose records are rewritten; tables, index and databases that follow the crawl
    lose the same visits. The crawl must not run. If the command is killed, call it again.
    """
    from gossamer.analysis.removals import trim as trim_crawl
    from gossamer.storage.tables.places import crawl_directory

    done = trim_crawl(crawl_directory(directory), versions, time.time(), accept=accept_loss, remark=tell)
    if as_json:
        say_json(done)
    else:
        gone = ", ".join((show_count(done.visits, "visit"), show_count(done.records, "record"), show_bytes(done.bytes)))
        print(f"dropped: {gone}")
    return 0


# `gossamer verify DIR`: whether a crawl directory holds what was committed to it.


@click.command(epilog="Exit status: 0 the crawl is whole, 2 DIR holds no crawl, 5 the crawl is damaged.")
@crawl_to_read
@option("--deep", "Read every record, row, index line and table, not only names and lengths.")
@as_json
def verify(directory: str, deep: bool, as_json: bool) -> int:
    """Compare the files of the crawl in DIR with the list of committed files in its ledger. Nothing is changed.

    It prints a line for each file that is missing, too short or changed. `gossamer resume DIR --accept-loss` goes on
    with a damaged crawl, and fetches lost documents again.
    """
    from gossamer.analysis.verifying import verify as verify_crawl
    from gossamer.storage.tables.places import crawl_directory

    told = verify_crawl(crawl_directory(directory), deep=deep)
    status = 0 if told.is_whole else CrawlDirectoryError.exit_code
    if as_json:
        say_json({"whole": told.is_whole, **msgspec.structs.asdict(told)})
        return status
    if told.notes:
        say_lines(f"note: {note}" for note in told.notes)
    for finding in told.findings:
        tell(finding)
    if told.more:
        tell(f"and {told.more} more")
    read = f", {told.records} records and {told.rows} documents were read" if deep else ""
    say_lines([f"{told.crawl}: {'whole' if told.is_whole else 'damaged'}: {told.files} files{read}"])
    return status


@click.command()
@click.argument("directory", metavar="DIR")
@option("--wiring wiring_name FILE", "Run the processors of this wiring, not the crawl's own.")
@option(
    "--processor processors [MIME=]NAME...",
    "Run only this processor (repeatable), and replace only items of the kinds that it finds.",
)
@option(
    "--spider spider_file FILE[:NAME]", "Run the handlers of this file over the pages, as `gossamer run FILE` does."
)
@option("--rdf", "Also read RDFa, JSON-LD and microdata into the triples, as `gossamer crawl --rdf` does.")
@option("--render", "Have a browser show pages again, with nothing but the answers of the archive.")
@option(
    "--browser PROGRAM",
    "Render with this program; by default, with that of the crawl, or the Chromium of this machine.",
)
@option("--cluster NAME", "Process parts of the archive on the machines of this cluster (ray), all of which see DIR.")
@as_json
def reprocess(
    directory: str,
    wiring_name: str | None,
    processors: tuple[str, ...],
    spider_file: str | None,
    rdf: bool,
    render: bool,
    browser: str | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Run processors over every document that the crawl in DIR archived, and replace the documents' rows in the tables.

    New rows replace the old ones of links and items, and the columns of pages that processing fills in (title,
    language, ...). This happens all at once when the run ends; until then, and after a kill, the tables are as they
    were. A crawl may run meanwhile. Requests of a spider's handlers become links in the tables; nothing is fetched.
    Triples are replaced if the crawl keeps them, or with --rdf; otherwise they stay as they are. With --render, pages
    that a browser showed in the crawl, and those that seem to need one, are read as it shows them now.
    """
    from gossamer.analysis.reprocess import reprocess as prepare
    from gossamer.crawls.compiling import find_wiring
    from gossamer.crawls.machine import coroutine_runner
    from gossamer.engine.sheet import nearest
    from gossamer.engine.subjects import found_at, subjects
    from gossamer.spiders.loading import load, parted

    places = {name: place for one in subjects() for name, place in one.far_tasks.items()}
    if cluster is not None and cluster not in places:
        raise click.UsageError(f"no cluster that processes an archive is called {cluster!r}{nearest(cluster, places)}")
    run = prepare(
        directory,
        wiring=find_wiring(wiring_name) if wiring_name else None,
        processors=processors,
        rdf=rdf,
        spider=None if spider_file is None else load(*parted(spider_file))[0].at_work(),
        render=render,
        browser=browser or "",
        report=tell,
        mapped=found_at(places[cluster]) if cluster is not None else None,
    )
    with coroutine_runner() as runner:
        done = runner.run(run.run())
    if as_json:
        say_json(done)
    else:
        rows = ", ".join(f"{count} {table}" for table, count in done.tables.items())
        print(f"processed {show_count(done.documents, 'document')} in {show_seconds(done.seconds)}: {rows}")
        if render:
            print(
                f"rendered {show_count(done.rendered, 'page')}, {done.rendered_alike} of them as the archive has them"
            )
        if done.is_at_work:
            read = (
                f"documents fetched until {done.read_until} were read"
                if done.read_until
                else "there was nothing to read"
            )
            print(f"running:  the crawl is running; {read}, and the crawl processes later pages itself")
        if done.unreadable:
            print(
                f"trouble:  {show_count(done.unreadable, 'record')} could not be read; their rows were left unchanged"
            )
    return 4 if done.unreadable else 0

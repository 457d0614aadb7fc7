"""`gossamer export`: what a crawl keeps, in the forms that other tools read."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gossamer.cli.helping import crawl_to_read, instant, opened, option, raw_cells, tell_damage
from gossamer.cli.saying import tell, tell_plain
from gossamer.engine.sheet import show_count
from gossamer.query.contract import EXPORT_FORMS, FOLDER_FORM, TABLE_FORMS, TRIPLE_FORMS, WORDS_FORMS
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.query.database import Database

#: URLs whose document can be read again from the archive, or could be fetched again.
_URLS = "SELECT DISTINCT url FROM pages WHERE outcome IN ('ok', 'truncated', 'not_modified') ORDER BY url"

#: Seconds to wait for the process that feeds the triple store of a running crawl.
_PATIENCE = 300.0


@click.command()
@crawl_to_read
@option(
    "--to form",
    "wacz: archive, index and pages in one file; csv, jsonl, parquet: a table; cdxj: the index; urls: one a line; "
    "folder: a copy to browse; markdown: the main part of each page, as files or JSON lines; chunks: the same in "
    "pieces for retrieval; nquads, turtle, jsonld, rdfxml: the triples.",
    type=click.Choice(list(EXPORT_FORMS)),
    required=True,
)
@option(
    "--table",
    "Write this table as csv, jsonl or parquet; item.KIND writes items of one kind, a column for each field.",
    default="pages",
    show_default=True,
)
@option(
    "-o --output FILE",
    "Default: standard output; for wacz and parquet DIR.wacz and so on, for folder DIR-mirror, for markdown DIR-markdown. "
    "Markdown is a folder of files, or JSON lines if FILE ends in .jsonl; chunks are Parquet if it ends in .parquet.",
)
@raw_cells
@option("--images", "Keep images in Markdown, as links to them.")
@option(
    "--chunk-words", "Let a chunk have at most this many words.", type=click.IntRange(1), default=300, show_default=True
)
@option(
    "--overlap",
    "Repeat this many words of the chunk before at the beginning of a chunk.",
    type=click.IntRange(0),
    default=0,
    show_default=True,
)
@option(
    "--since TIME",
    "Write only chunks that are new, changed or gone since this time: the mark that the last export told, "
    "2026-03-01T12:00, or 7d for the last week.",
)
def export(
    directory: str,
    form: str,
    table: str,
    output: str | None,
    raw: bool,
    images: bool,
    chunk_words: int,
    overlap: int,
    since: str | None,
) -> int:
    """Write data of the crawl in DIR in formats that other tools read, also while it runs.

    If a record cannot be read, no WACZ is written. The command names damaged tables, leaves them out, and exits with 5.

    \b
    gossamer export crawl --to wacz                        crawl.wacz, to be opened at replayweb.page
    gossamer export crawl --to csv --table links -o links.csv
    gossamer export crawl --to urls | wc -l
    gossamer export crawl --to folder -o site               open site/index.html in a browser
    gossamer export crawl --to nquads -o crawl.nq          each quad's graph is the page that says it
    gossamer export crawl --to markdown -o pages           a file for each page, with its facts in front
    gossamer export crawl --to chunks -o chunks.jsonl      pieces with stable ids; later --since MARK
    """
    from gossamer.query.convert import convert, sound_index
    from gossamer.query.database import Database
    from gossamer.storage.tables.places import crawl_directory

    _check(form, output)
    place = crawl_directory(directory)
    if form == FOLDER_FORM:
        return _folder(place, Path(output or f"{place.resolve().name}-mirror"))
    if form in TRIPLE_FORMS:
        with _writing(output):
            _triples(place, form, output)
        return 0
    if form in WORDS_FORMS:
        with _writing(output):
            if form == "markdown":
                return _markdown(place, Path(output or f"{place.resolve().name}-markdown"), images)
            return _chunks(place, output, chunk_words, overlap, since)
    convert(place)
    if form in ("cdxj", "wacz") and (told := sound_index(place)):
        tell(told)
    if output is None and form in ("wacz", "parquet"):
        output = f"{place.resolve().name}{'' if form == 'wacz' else f'-{table}'}.{form}"
    with _writing(output):
        if form == "cdxj":
            with _index(place) as index, index.open("rb") as lines, opened(output) as out:
                shutil.copyfileobj(lines, out.buffer)
            return 0
        with Database(place) as database:
            if form == "wacz":
                _wacz(place, database, Path(output or ""))
            elif form == "parquet":
                database.write_parquet(_all_of(database, table), Path(output or ""))
            else:
                _rows(database, form, table, output, raw)
            status = tell_damage(database.damage_to(table if form in TABLE_FORMS else "pages"))
    if output is not None:
        tell_plain(f"wrote {output}")
    return status


#: The forms that an option says something about.
_FORMS = {"since": "chunks", "chunk_words": "chunks", "overlap": "chunks", "images": "markdown", "raw": "csv"}


def _check(form: str, output: str | None) -> None:
    context = click.get_current_context()
    for name, told in _FORMS.items():
        if form != told and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --to {told}; leave it out of --to {form}")
    if form not in TABLE_FORMS and context.get_parameter_source("table") is ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--table is for --to {', '.join(TABLE_FORMS)}; leave it out of --to {form}")
    if output is not None and Path(output).is_dir() and form not in (FOLDER_FORM, "markdown"):
        raise click.UsageError(f"-o {output}: is a folder; name a file")


def _folder(place: Path, folder: Path) -> int:
    from gossamer.analysis.mirror import write_mirror

    for line in write_mirror(place, folder).told(folder):
        tell_plain(line)
    return 0


def _markdown(place: Path, target: Path, images: bool) -> int:
    from gossamer.analysis.mirror import mirror_names
    from gossamer.words.exporting import write_markdown

    is_folder = target.suffix != ".jsonl"
    if is_folder:
        target.mkdir(parents=True, exist_ok=True)
    done = write_markdown(place, target, mirror_names if is_folder else None, images=images)
    for remark in done.remarks:
        tell(remark)
    tell_plain(f"wrote {show_count(done.pages, 'page')} to {target}")
    return 0


def _chunks(place: Path, output: str | None, words: int, overlap: int, since: str | None) -> int:
    from gossamer.words.exporting import write_chunks

    begun = instant("--since", since)
    done = write_chunks(place, Path(output) if output else None, words=words, overlap=overlap, since=begun)
    for remark in done.remarks:
        tell(remark)
    tell(f"{show_count(done.rows, 'chunk')} of {show_count(done.pages, 'page')}; next time: --since {done.mark}")
    return 0


@contextlib.contextmanager
def _writing(output: str | None) -> Iterator[None]:
    """A file that cannot be written is the person's to mend."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = error.filename or output or "standard output"
        raise UsageError(f"{name} cannot be written: {error.strerror or error}") from None


def _all_of(database: "Database", table: str) -> str:
    """The question for a whole table. Raises UsageError: there is none of this name."""
    from gossamer.engine.sheet import nearest
    from gossamer.query.item_tables import asks_for_items

    known = database.tables
    if asks_for_items(table):
        known = [*known, *database.item_views()]
        if table in known:
            schema, _, name = table.partition(".")
            return f'SELECT * FROM {schema}."{name}"'  # noqa: S608  # a name that is known
    if table not in known:
        raise UsageError(f"there is no table {table!r}{nearest(table, known)}; this crawl has {', '.join(known)}")
    return f'SELECT * FROM "{table}"'  # noqa: S608  # a name that is known


def _rows(database: "Database", form: str, table: str, output: str | None, raw: bool) -> None:
    from gossamer.query.printing import write_rows

    answer = database.ask(_URLS if form == "urls" else _all_of(database, table))
    with opened(output) as out:
        if form == "urls":
            out.writelines(f"{url}\n" for (url,) in answer)
        else:
            write_rows(form, answer.columns, answer, out, types=answer.types, raw=raw)


def _triples(place: Path, form: str, output: str | None) -> None:
    import pyoxigraph as oxigraph

    from gossamer.rdf.store.asking import current_copy
    from gossamer.rdf.store.graphs import all_quads, write_graph

    with current_copy(place, _PATIENCE) as copy, opened(output) as out:
        left_out = write_graph(all_quads(oxigraph.Store.read_only(str(copy))), form, out)
    if left_out:
        told = "RDF/XML cannot name their predicates; the other forms can"
        tell(f"{left_out.total()} triples are left out: {told}")
    if output is not None:
        tell_plain(f"wrote {output}")


@contextlib.contextmanager
def _index(place: Path) -> Iterator[Path]:
    from gossamer.engine.files import scratch
    from gossamer.query.convert import index_now
    from gossamer.storage.tables.places import reading

    with reading(place), scratch() as folder:
        yield index_now(place, Path(folder))


def _wacz(place: Path, database: "Database", target: Path) -> None:
    from gossamer.query.wacz import write_wacz

    with _index(place) as index:
        if not index.stat().st_size:
            raise UsageError(f"{place} has no archive, so there is nothing to replay; export a table instead")
        write_wacz(place, database, index, target)

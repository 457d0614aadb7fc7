"""The file of sinks, each a database with the tables or statements that rows of a crawl go to.

::

    [sinks.shop]
    url = "postgresql://crawler@db.example/shop"
    password = { env = "SHOP_PASSWORD" }             # or { file = "/home/me/.shop" }, which only its owner may read

    [[sinks.shop.tables]]
    from = "items"                                   # a table of the crawl
    kind = "price"                                   # of items, only this kind
    into = "public.prices"
    key = ["page", "name"]                           # a row replaces the one with the same values
    columns = { page = "url", name = "data.name", euros = "data.price", crawl = "crawl" }

A webhook is a sink whose URL begins with http or https: rows are posted to it, and nothing but `columns` says which part of them.

Place in the flow: `gossamer crawl --sinks FILE` keeps a copy of the file in the crawl directory. Secrets are not in it, and
stay where they are.
"""

import datetime
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from gossamer.engine.files import text_in, toml_of
from gossamer.engine.sheet import nearest
from gossamer.storage.tables.contract import VISIT, TableSpec
from gossamer.values.errors import UsageError
from gossamer.values.outcome import PageChange

#: The column that every table of the crawl has here: the crawl's id.
CRAWL = "crawl"

SinkName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,40}$")]

_T = TypeVar("_T", bound=msgspec.Struct)

_PARAMETER = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")


class SinkSecret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a password comes from: one of the two."""

    env: str = ""
    file: str = ""

    def read(self) -> str:
        """The password.
        Raises UsageError: it is not there, or others may read its file; the password itself is never told."""
        if self.env:
            if self.env not in os.environ:
                raise UsageError(f"the password is to come from the variable {self.env}, which is not set")
            return os.environ[self.env]
        try:
            mode = Path(self.file).stat().st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UsageError(f"{self.file} holds a password and others may read it; run: chmod 600 {self.file}")
            return Path(self.file).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{self.file}: the password cannot be read: {getattr(error, 'strerror', None) or 'no text'}"
            ) from None


class SinkTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """Where rows of one table go."""

    source: str
    """A table of the crawl."""
    into: str = ""
    """A table of the database, as `schema.table`."""
    statement: str = ""
    """Instead of a table: a statement with `:name` for the columns."""
    columns: dict[str, str] = {}
    """Column there -> column of the crawl's table; `data.price` takes a field out of JSON, `crawl` is the crawl's id."""
    changes: tuple[PageChange, ...] = ()
    """Of pages, only visits that found one of these changes."""
    key: tuple[str, ...] = ()
    """Columns there: a row takes the place of the one with the same values."""
    kind: str = ""
    """Of items, only those of this kind."""
    gone: str = "put"
    """A page that is gone: `put` its row like any other, `delete` its row, `keep` it, or `mark:COLUMN` sets that column to true."""
    page: str = ""
    """Column there that holds the URL of the page: rows of a later visit take the place of all that the page had."""


class SinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    tables: tuple[SinkTable, ...]
    password: SinkSecret | None = None
    secret: SinkSecret | None = None
    """The key that signs deliveries to a webhook."""

    @property
    def scheme(self) -> str:
        """The kind of the database: `postgresql`, `sqlite`, or a dialect of SQLAlchemy."""
        return urlsplit(self.url).scheme

    @property
    def is_webhook(self) -> bool:
        return self.scheme in ("http", "https")


class SinkFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All databases of one crawl."""

    sinks: dict[SinkName, SinkSpec] = {}


def read_sinks(path: Path, tables: dict[str, TableSpec]) -> SinkFile:
    """The sinks of a file, checked as far as the file alone tells.
    Raises UsageError: it cannot be read, or names what is not there; a line for each thing, without a password."""
    plain = toml_of(text_in(path, UsageError), str(path), UsageError)
    sinks = plain.get("sinks")
    problems = (
        [problem for name, sink in sinks.items() for problem in _of_plain(f"{path}: sink {name}", name, sink, tables)]
        if isinstance(sinks, dict)
        else []
    )
    try:
        found = msgspec.convert(plain, SinkFile)
    except msgspec.ValidationError as error:
        raise UsageError("\n".join(problems) or f"{path}: {error}") from None
    if problems:
        raise UsageError("\n".join(problems))
    if not found.sinks:
        raise UsageError(f"{path} names no sink; begin one with [sinks.NAME]")
    return found


def _of_plain(where: str, name: str, plain: Any, tables: dict[str, TableSpec]) -> Iterator[str]:
    """All that is wrong with a sink: with the form of each part, and with what the parts say as far as they can be read."""
    listed = plain.get("tables") if isinstance(plain, dict) else None
    formed: list[SinkTable] = []
    for number, table in enumerate(listed if isinstance(listed, list) else (), 1):
        problems, read = _in_form(f"{where}, table {number}", table, SinkTable)
        yield from problems
        formed += [read] if read is not None else []
    problems, sink = _in_form(where, {**plain, "tables": []} if isinstance(listed, list) else plain, SinkSpec)
    yield from problems
    if sink is not None and (formed or not listed):
        yield from _of_sink(where, name, msgspec.structs.replace(sink, tables=tuple(formed)), tables)


def _in_form(where: str, plain: Any, form: type[_T]) -> tuple[list[str], _T | None]:
    """The faults in the form of a part, and the part as far as its names are known; None where it cannot be read."""
    known = [field.encode_name for field in msgspec.structs.fields(form)]
    settings = plain if isinstance(plain, dict) else {}
    problems = [f"{where}: unknown setting {name!r}{nearest(name, known)}" for name in settings if name not in known]
    try:
        taken = {name: value for name, value in settings.items() if name in known}
        return problems, msgspec.convert(taken if isinstance(plain, dict) else plain, form)
    except msgspec.ValidationError as error:
        return [*problems, f"{where}: {error}"], None


# -- the faults of a file, each in one line


def _of_sink(where: str, name: str, sink: SinkSpec, tables: dict[str, TableSpec]) -> Iterator[str]:
    if not sink.scheme:
        yield f"{where}: write url as postgresql://user@host/database or sqlite:///path/file.db"
    if urlsplit(sink.url).password:
        yield f"{where}: a password has no place in the file; name where it is with password = {{ env = ... }}"
    for setting, secret in (("password", sink.password), ("secret", sink.secret)):
        if secret is not None and bool(secret.env) == bool(secret.file):
            yield f"{where}: {setting} names either env or file"
    if sink.password if sink.is_webhook else sink.secret:
        yield f"{where}: a database takes a password, and a webhook a secret that deliveries are signed with"
    if not sink.tables:
        yield f"{where} names no table; begin one with [[sinks.{name}.tables]]"
    for table in sink.tables:
        here = f"{where}, from {table.source}"
        spec = tables.get(table.source)
        if spec is None:
            yield f"{here}: the crawl has no such table{nearest(table.source, tables)}"
            continue
        yield from (_of_webhook if sink.is_webhook else _of_places)(here, table, spec)
        yield from _of_columns(here, table, spec)


def _of_columns(where: str, table: SinkTable, spec: TableSpec) -> Iterator[str]:
    if table.changes and table.source != "pages":
        yield f"{where}: changes are those of pages"
    if not table.columns:
        yield f'{where}: columns says which columns take what, as columns = {{ page = "url" }}'
    for there, source in table.columns.items():
        column = source.partition(".")[0]
        if column not in (*spec.names, CRAWL):
            yield f"{where}: column {there} is to take {source!r}{nearest(column, [*spec.names, CRAWL])}"
    if table.kind and spec.kind is None:
        yield f"{where}: only items have a kind"


def _of_places(where: str, table: SinkTable, spec: TableSpec) -> Iterator[str]:
    """How rows lie in a database."""
    if bool(table.into) == bool(table.statement):
        yield f"{where}: name either into or statement"
    used = [*table.key, *((table.page,) if table.page else ()), *_PARAMETER.findall(table.statement)]
    for column in dict.fromkeys(used):
        if column not in table.columns:
            yield f"{where}: {column!r} is not among its columns{nearest(column, table.columns)}"
    if table.columns.get(table.page, spec.page) != spec.page:
        yield f"{where}: page names the column that takes {spec.page!r}"
    if table.gone != "put" and (table.source != "pages" or "url" not in table.columns.values() or table.statement):
        yield f'{where}: gone is for rows of pages with a column that takes "url"'
    if table.gone not in ("put", "delete", "keep") and not table.gone.startswith("mark:"):
        yield f"{where}: gone is put, delete, keep or mark:COLUMN"
    if table.into and not table.key and CRAWL not in table.columns.values():
        yield f'{where}: name a key, or a column that takes "crawl": rows that come again would be there twice'


def _of_webhook(where: str, table: SinkTable, spec: TableSpec) -> Iterator[str]:
    """Settings that say how rows lie in a database mean nothing for a webhook."""
    for name in ("into", "statement", "key", "page"):
        if getattr(table, name):
            yield f"{where}: {name} is for databases; a webhook gets rows with the names in columns"
    if table.gone != "put":
        yield f'{where}: gone is for databases; a webhook gets pages that are gone by changes = ["gone"]'
    if VISIT not in spec.names:
        yield f"{where}: a webhook gets tables that are made of visits"


def named_parameters(statement: str) -> str:
    """A statement with its `:name` parameters as psycopg has them."""
    return _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))


# Values for the columns of a mapping, made of a crawl's rows: each is what every database, and JSON, can hold. Sinks of databases
# and webhooks (:mod:`sink`) make by it what they hand on.

Row = tuple[Any, ...]


def columns_of(to: SinkTable) -> tuple[str, ...]:
    """The columns of the crawl's table that a mapping needs: those that it names, and those by which rows are judged."""
    named = {source.partition(".")[0] for source in to.columns.values()} - {CRAWL}
    if to.kind:
        named.add("kind")
    if to.page:
        named.add("visit")
    if to.gone != "put":
        named |= {"outcome", "change", "url"}
    if to.changes:
        named.add("change")
    return tuple(sorted(named))


def row_maker(
    table: SinkTable, crawl: str, columns: Sequence[str], instant: Callable[[datetime.datetime], Any]
) -> Callable[[Row], Row]:
    """The function that makes the values for a mapping's columns of a row of the crawl, whose values `columns` names; `instant`
    makes what is handed on of an instant with its zone."""
    places = {name: place for place, name in enumerate(columns)}
    parts = [source.split(".") for source in table.columns.values()]
    plan = [(places.get(column, -1), column == CRAWL, path) for column, *path in parts]

    def made(row: Row) -> Row:
        values = []
        for place, is_crawl, path in plan:
            value = crawl if is_crawl else row[place] if place >= 0 else None
            if path:
                value = _taken(value, path)
            if type(value) is str:
                values.append(value if value.isascii() and "\0" not in value else _clean(value))
            elif isinstance(value, datetime.datetime):
                values.append(instant(value if value.tzinfo else value.replace(tzinfo=datetime.UTC)))
            else:
                values.append(_clean(value))
        return tuple(values)

    return made


def _taken(value: Any, path: Sequence[str]) -> Any:
    """A field out of JSON; None where it is not there."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str) else value
    except ValueError:
        return None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return msgspec.json.encode(found).decode() if isinstance(found, dict | list) else found


def _clean(value: Any) -> Any:
    """Values as every database takes them: no NUL and no half of a surrogate pair in texts, and JSON as a text."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, enc_hook=str).decode()
    return value

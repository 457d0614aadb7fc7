"""Rows of a crawl reach databases of the user's own, each once, and what is wrong with a mapping is one line."""

import contextlib
import random
import resource
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.cli.main import main
from gossamer.query.convert import convert
from gossamer.query.following import Retried, RetryingFollower, feed_until
from gossamer.query.schema import tables_that_ship
from gossamer.sinks.commands import check_sinks
from gossamer.sinks.drivers import connect_sink
from gossamer.sinks.mapping import SinkSpec, SinkTable, named_parameters, read_sinks
from gossamer.sinks.sink import REFUSED, DatabaseSink, sink_follower
from gossamer.storage.tables.contract import FeedBatch, FeedMark, FeedPlace, FollowerNote
from gossamer.storage.tables.places import SINKS_FILE
from gossamer.testing import check_feed_consumer
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]

HOSTILE = "'); DROP TABLE prices; -- \x00 \ud800 %s :x ?"

CRAWL = "20260301-abc"

PRICES = SinkTable(
    source="items", into="prices", kind="n", columns={"page": "url", "euros": "data.n", "crawl": "crawl"}, key=("page",)
)


@pytest.fixture(params=["sqlite", "sqlalchemy", "postgresql", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param in ("postgresql", "mariadb"):
        return emptied(request.getfixturevalue("postgres" if request.param == "postgresql" else "mariadb"))
    (tmp_path / "my.db").touch()
    driver = "sqlite" if request.param == "sqlite" else "sqlite+pysqlite"
    return f"{driver}:///{tmp_path}/my.db"


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Do something in the database, past the sink; the answer of the last statement. A file of SQLite is made."""
    if url.startswith("sqlite:"):
        Path(url.removeprefix("sqlite:///")).touch()
    driver = connect_sink(SinkSpec(url, ()))
    try:
        for statement in statements:
            answer = driver.run(statement)
        driver.commit()
        return [tuple(row) for row in answer]
    finally:
        driver.close()


def sink(directory: Path, url: str, table: SinkTable = PRICES, crawl: str = CRAWL) -> DatabaseSink:
    return DatabaseSink(directory, crawl, "shop", SinkSpec(url, (table,)), 0)


def emptied(server: Any) -> str:
    """The URL of its database, in which nothing is left."""
    url: str = server.url
    if url.startswith("postgresql"):
        run(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    else:
        run(url, "DROP DATABASE crawled", "CREATE DATABASE crawled")
    return url


GONE_COLUMNS = ("url", "outcome", "change", "visit")

COLUMNS = ("kind", "url", "data", "visit")


def batch(row: int, *items: tuple[str, object, str], kind: str = "n") -> FeedBatch:
    """Items as (URL, value, visit); the mark is behind so many rows."""
    rows = [(kind, url, msgspec.json.encode({"n": value}).decode(), visit) for url, value, visit in items]
    return FeedBatch(COLUMNS, rows, FeedMark(0, {"agent-00": FeedPlace("r", 1, row)}))


@pytest.mark.forks
@pytest.mark.parametrize("step", [43, pytest.param(11, marks=pytest.mark.long)])
def test_a_sink_keeps_the_promises_of_a_consumer(tmp_path: Path, step: int) -> None:
    url = f"sqlite:///{tmp_path}/my.db"
    run(url, "CREATE TABLE prices (page TEXT PRIMARY KEY, euros INTEGER, crawl TEXT)")

    def row(number: int) -> tuple[Any, ...]:
        return ("n", f"http://a.test/{number}", f'{{"n":{number}}}', f"v{number}")

    def kept() -> list[Any]:
        return run(url, "SELECT page, euros FROM prices ORDER BY rowid")

    check_feed_consumer(lambda: sink(tmp_path, url), kept, COLUMNS, row, step=step)


def test_a_row_takes_the_place_of_the_one_with_its_key(tmp_path: Path, url: str) -> None:
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER, crawl VARCHAR(50))")
    one = sink(tmp_path, url)
    one.take(batch(2, ("http://a.test/1", 1, "v1"), ("http://a.test/1", 2, "v2")))
    one.take(batch(3, ("http://a.test/1", 3, "v3"), ("http://a.test/2", 9, "v4")))
    assert run(url, "SELECT page, euros, crawl FROM prices ORDER BY page") == [
        ("http://a.test/1", 3, CRAWL),
        ("http://a.test/2", 9, CRAWL),
    ]
    one.close()
    again = sink(tmp_path, url)
    assert again.mark().places["agent-00"].row == 3
    again.close()


def test_two_crawls_fill_one_table_and_each_clears_its_own_rows(tmp_path: Path, url: str) -> None:
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER, crawl VARCHAR(50))")
    table = msgspec.structs.replace(PRICES, key=("page", "crawl"))
    first, second = sink(tmp_path, url, table), sink(tmp_path, url, table, "another")
    first.take(batch(1, ("http://a.test/1", 1, "v1")))
    second.take(batch(1, ("http://a.test/1", 2, "v1")))
    first.rebuild(1)
    assert run(url, "SELECT euros, crawl FROM prices") == [(2, "another")]
    assert first.mark() == FeedMark(1) and second.mark() != FeedMark(1)
    first.close()
    second.close()


def test_rows_of_a_later_visit_take_the_place_of_all_that_the_page_had(tmp_path: Path, url: str) -> None:
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER, crawl VARCHAR(50))")
    one = sink(tmp_path, url, msgspec.structs.replace(PRICES, key=(), page="page"))
    page = "http://a.test/1"
    one.take(batch(2, (page, 1, "v1"), (page, 2, "v1")))
    one.take(batch(3, (page, 3, "v1")))
    assert sorted(run(url, "SELECT euros FROM prices")) == [(1,), (2,), (3,)]
    one.take(batch(4, (page, 7, "v2")))
    assert run(url, "SELECT euros FROM prices") == [(7,)]
    one.close()


def test_hostile_words_stay_words(tmp_path: Path, url: str) -> None:
    run(url, "CREATE TABLE prices (page VARCHAR(200), euros VARCHAR(200), crawl VARCHAR(50))")
    one = sink(tmp_path, url)
    rows = [("n", HOSTILE, msgspec.json.encode({"n": "'); DROP TABLE prices; -- %s"}).decode(), "v1")]
    one.take(FeedBatch(COLUMNS, rows, FeedMark(0, {"a": FeedPlace("r", 1, 1)})))
    assert run(url, "SELECT page, euros FROM prices") == [
        (HOSTILE.replace("\0", "\ufffd").replace("\ud800", "?"), "'); DROP TABLE prices; -- %s")
    ]
    one.close()


def test_what_the_database_refuses_is_set_aside_and_the_rest_goes_in(tmp_path: Path, url: str) -> None:
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER CHECK (euros < 100), crawl VARCHAR(50))")
    one = sink(tmp_path, url)
    one.take(
        batch(5, *((f"http://a.test/{number}", 500 if number == 2 else number, f"v{number}") for number in range(5)))
    )
    assert [row[0] for row in run(url, "SELECT euros FROM prices ORDER BY euros")] == [0, 1, 3, 4]
    [line] = (tmp_path / REFUSED / "shop.refused.jsonl").read_bytes().splitlines()
    told = msgspec.json.decode(line)
    assert told["row"]["euros"] == 500
    assert "constraint" in told["reason"].lower()
    assert one.refused == 1
    one.close()


def test_a_statement_of_the_users_takes_rows_by_name(tmp_path: Path, url: str) -> None:
    run(url, "CREATE TABLE log (share VARCHAR(10), told VARCHAR(200))")
    statement = "INSERT INTO log (share, told) VALUES ('100%', :page)"
    one = sink(tmp_path, url, SinkTable(source="items", statement=statement, columns={"page": "url"}))
    one.take(batch(1, ("http://a.test/1", 1, "v1")))
    assert run(url, "SELECT share, told FROM log") == [("100%", "http://a.test/1")]
    one.close()


@pytest.mark.parametrize(
    ("gone", "rows"),
    [("delete", []), ("keep", [("http://a.test/1", None)]), ("mark:is_gone", [("http://a.test/1", True)])],
)
def test_a_page_that_is_gone_is_treated_as_the_mapping_says(
    tmp_path: Path, url: str, gone: str, rows: list[Any]
) -> None:
    run(url, "CREATE TABLE docs (u VARCHAR(50), is_gone BOOLEAN)")
    one = sink(tmp_path, url, SinkTable(source="pages", into="docs", columns={"u": "url"}, key=("u",), gone=gone))
    for number, outcome in enumerate((Outcome.OK, Outcome.TIMED_OUT, Outcome.CLIENT_ERROR)):
        mark = FeedMark(0, {"a": FeedPlace("r", 1, number)})
        one.take(FeedBatch(GONE_COLUMNS, [("http://a.test/1", str(outcome), None, f"v{number}")], mark))
    assert [
        (page, flag if flag is None else bool(flag)) for page, flag in run(url, "SELECT u, is_gone FROM docs")
    ] == rows
    one.close()


def test_a_missing_table_loses_nothing_and_is_filled_when_it_is_there(kept: Open, page: Make, url: str) -> None:
    crawl = kept()
    crawl.commit(page(1, id="v1"), page(2, id="v2"))
    convert(crawl.directory, ended=True)
    (crawl.directory / SINKS_FILE).write_text(
        f'[sinks.shop]\nurl = "{url}"\n[[sinks.shop.tables]]\nfrom = "items"\ninto = "prices"\nkey = ["page"]\n'
        'columns = { page = "url", euros = "data.n" }\n',
        encoding="utf-8",
    )

    def told() -> list[FollowerNote]:
        with contextlib.closing(sink_follower(crawl.directory, "shop", sleep=lambda _: None)) as follower:
            return feed_until(crawl.directory, follower, lambda: True)

    [lacking] = told()
    assert lacking.is_lacking
    assert lacking.text.startswith("sink shop, items: ") and "prices" in lacking.text
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER)")
    for _ in range(2):
        assert told() == []
        assert run(url, "SELECT euros FROM prices ORDER BY euros") == [(1,), (2,)]


class Away:
    """Opens a sink, but for the first times; notes the look at which it was tried."""

    def __init__(self, times: int, make: Callable[[], DatabaseSink]) -> None:
        self.look = 1
        self.tried: list[int] = []
        self._times = times
        self._make = make

    def __call__(self) -> DatabaseSink:
        self.tried.append(self.look)
        if len(self.tried) <= self._times:
            raise OSError("connection refused")
        return self._make()


def test_a_sink_that_fails_keeps_no_other_waiting_and_is_tried_with_growing_pauses(
    kept: Open, page: Make, tmp_path: Path
) -> None:
    crawl = kept()
    crawl.commit(page(1, id="v1"))
    convert(crawl.directory, ended=True)
    url = f"sqlite:///{tmp_path}/my.db"
    run(url, "CREATE TABLE prices (page TEXT, euros INTEGER, crawl TEXT)")
    broken = Away(100, lambda: sink(tmp_path, url))
    pauses: list[float] = []

    def rest() -> bool:
        assert run(url, "SELECT euros FROM prices") == [(1,)], "the sound one waits for the broken one"
        broken.look += 1
        return broken.look == 20

    every = [Retried("broken", broken), Retried("sound", lambda: sink(tmp_path, url))]
    with contextlib.closing(RetryingFollower(crawl.directory, every, pauses.append)) as follower:
        [told] = feed_until(crawl.directory, follower, rest)
    assert told.is_lacking and told.text.startswith("broken: connection refused; ")
    assert broken.tried == [1, 3, 7, 15, *[20] * 5] and len(pauses) == 5


@pytest.mark.parametrize(("times", "tried"), [(2, [1, 3, 7]), (6, [1, 3, 7, 9, 9, 9, 9])])
def test_a_sink_that_comes_back_gets_everything_and_nobody_is_told(
    kept: Open, page: Make, tmp_path: Path, times: int, tried: list[int]
) -> None:
    crawl = kept()
    crawl.commit(page(1, id="v1"))
    convert(crawl.directory, ended=True)
    url = f"sqlite:///{tmp_path}/my.db"
    run(url, "CREATE TABLE prices (page TEXT, euros INTEGER, crawl TEXT)")
    away = Away(times, lambda: sink(tmp_path, url))

    def rest() -> bool:
        away.look += 1
        return away.look == 9

    with contextlib.closing(RetryingFollower(crawl.directory, [Retried("away", away)], lambda _: None)) as follower:
        assert feed_until(crawl.directory, follower, rest) == []
    assert run(url, "SELECT euros FROM prices") == [(1,)] and away.tried == tried


def test_a_follower_that_rests_ten_seconds_looks_and_tries_again_by_those(
    kept: Open, page: Make, tmp_path: Path
) -> None:
    crawl = kept()
    crawl.commit(page(1, id="v1"))
    broken = Away(100, lambda: sink(tmp_path, f"sqlite:///{tmp_path}/my.db"))

    def rest() -> bool:
        broken.look += 1
        return broken.look == 100

    every = [Retried("broken", broken)]
    with contextlib.closing(RetryingFollower(crawl.directory, every, lambda _: None, rests=10)) as follower:
        feed_until(crawl.directory, follower, rest)
    assert broken.tried == [1, 21, 51, 81, *[100] * 5]


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Any:
    """A server that can be stopped and started, with nothing in it."""
    one = request.getfixturevalue(request.param)
    emptied(one)
    return one


@pytest.mark.parametrize(
    ("which", "sessions", "end"),
    [
        (
            "postgres",
            "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
            "SELECT pg_terminate_backend({})",
        ),
        ("mariadb", "SELECT id FROM information_schema.processlist WHERE id <> connection_id()", "KILL {}"),
    ],
)
def test_a_connection_that_is_cut_within_the_work_is_made_anew(
    request: pytest.FixtureRequest, tmp_path: Path, which: str, sessions: str, end: str
) -> None:
    url = emptied(request.getfixturevalue(which))
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER, crawl VARCHAR(50))")
    one = sink(tmp_path, url)
    one.take(batch(1, ("http://a.test/1", 1, "v1")))
    for (session,) in run(url, sessions):
        with contextlib.suppress(OSError):  # it ended by itself
            run(url, end.format(session))
    with pytest.raises(OSError, match=r"terminat|Lost|gone away|kill") as told:
        one.take(batch(2, ("http://a.test/2", 2, "v2")))
    assert "\n" not in str(told.value)
    one.close()
    again = sink(tmp_path, url)
    assert again.mark().places["agent-00"].row == 1
    again.take(batch(2, ("http://a.test/2", 2, "v2")))
    assert run(url, "SELECT euros FROM prices ORDER BY 1") == [(1,), (2,)]
    again.close()


def test_a_server_that_is_killed_and_started_while_the_crawl_goes_on_has_every_row_once(
    kept: Open, page: Make, server: Any
) -> None:
    crawl = kept()

    def commit(number: int) -> None:
        crawl.commit(page(number, id=f"v{number}"))
        crawl.rows.committed(crawl.rows.ends())

    commit(1)
    run(server.url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER)")
    (crawl.directory / SINKS_FILE).parent.mkdir(exist_ok=True)
    (crawl.directory / SINKS_FILE).write_text(
        f'[sinks.shop]\nurl = "{server.url}"\n[[sinks.shop.tables]]\nfrom = "items"\ninto = "prices"\nkey = ["page"]\n'
        'columns = { page = "url", euros = "data.n" }\n',
        encoding="utf-8",
    )
    looks = 0

    def rest() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            server.stop()
        elif looks in (2, 5):
            commit(looks)
        elif looks == 7:
            server.start()
        return looks == 9

    try:
        with contextlib.closing(sink_follower(crawl.directory, "shop", sleep=lambda _: None)) as follower:
            assert feed_until(crawl.directory, follower, rest) == []
    finally:
        server.start()
    assert run(server.url, "SELECT euros FROM prices ORDER BY 1") == [(1,), (2,), (5,)]


@contextlib.contextmanager
def small_files(server: Any, blocks: int) -> Iterator[None]:
    """No file of the database, or of this process where that is the database, gets more blocks of 512 bytes."""
    if server is None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (blocks * 512, hard))
    else:
        server.stop()
        server.start(blocks=str(blocks))
    try:
        yield
    finally:
        if server is None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        else:
            server.stop()
            server.start()


@pytest.mark.parametrize(
    ("kind", "blocks", "rows", "said"),
    [
        ("postgres", 3_000, 500, "could not extend"),
        ("mariadb", 32_768, 3_000, "is full"),
        ("sqlite", 3_000, 500, "full|disk I/O error"),
        ("sqlite+pysqlite", 3_000, 500, "full|disk I/O error"),
    ],
)
def test_a_full_disk_of_the_database_loses_nothing(
    kind: str, blocks: int, rows: int, said: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = None if kind.startswith("sqlite") else request.getfixturevalue(kind)
    url = f"{kind}:///{tmp_path}/my.db" if server is None else emptied(server)
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros TEXT, crawl TEXT)")
    full = batch(
        2, *((f"http://a.test/{number}", random.Random(number).randbytes(4_000).hex(), "v") for number in range(rows))
    )
    with small_files(server, blocks):
        one = sink(tmp_path, url)
        with pytest.raises(OSError, match=said) as told:
            one.take(full)
        assert "\n" not in str(told.value)
        one.close()
    again = sink(tmp_path, url)
    assert again.mark() == FeedMark() and run(url, "SELECT count(*) FROM prices") == [(0,)]
    again.take(full)
    assert run(url, "SELECT count(*) FROM prices") == [(rows,)] and not again.refused
    again.close()


TRIGGERS = {
    "postgres": "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN IF NEW.euros = 2 THEN RAISE EXCEPTION 'not two'; END IF; RETURN NEW; END $$;"
    "CREATE TRIGGER no BEFORE INSERT ON prices FOR EACH ROW EXECUTE FUNCTION no()",
    "mariadb": "CREATE TRIGGER no BEFORE INSERT ON prices FOR EACH ROW "
    "IF NEW.euros = 2 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not two'; END IF",
}


@pytest.mark.parametrize("which", TRIGGERS)
def test_what_a_trigger_of_the_users_refuses_is_set_aside(
    request: pytest.FixtureRequest, tmp_path: Path, which: str
) -> None:
    url = emptied(request.getfixturevalue(which))
    run(url, "CREATE TABLE prices (page VARCHAR(50), euros INTEGER, crawl VARCHAR(50))", TRIGGERS[which])
    one = sink(tmp_path, url)
    one.take(batch(3, *((f"http://a.test/{number}", number, "v") for number in (1, 2, 3))))
    assert run(url, "SELECT euros FROM prices ORDER BY 1") == [(1,), (3,)]
    [line] = (tmp_path / REFUSED / "shop.refused.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(line)["reason"] == "not two"
    one.close()


def test_a_text_that_is_too_long_for_its_column_is_set_aside_and_the_rest_goes_in(tmp_path: Path, server: Any) -> None:
    run(server.url, "CREATE TABLE prices (page VARCHAR(17), euros INTEGER, crawl VARCHAR(50))")
    one = sink(tmp_path, server.url)
    one.take(
        batch(3, ("http://a.test/1", 1, "v1"), ("http://a.test/much/longer", 2, "v2"), ("http://a.test/3", 3, "v3"))
    )
    assert run(server.url, "SELECT euros FROM prices ORDER BY 1") == [(1,), (3,)]
    [line] = (tmp_path / REFUSED / "shop.refused.jsonl").read_bytes().splitlines()
    assert "too long" in msgspec.json.decode(line)["reason"] and one.refused == 1
    one.close()


def test_a_database_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    for url in ("postgresql://nobody@127.0.0.1:1/x", f"sqlite:///{tmp_path}/none/my.db"):
        with pytest.raises(OSError, match=r"refused|no such database") as told:
            connect_sink(SinkSpec(url, ()))
        assert "\n" not in str(told.value)


def write(tmp_path: Path, sink: str, table: str) -> Path:
    file = tmp_path / "sinks.toml"
    file.write_text(f"[sinks.shop]\n{sink}\n[[sinks.shop.tables]]\n{table}\n", encoding="utf-8")
    return file


URL = 'url = "sqlite:///x.db"'
TABLE = 'from = "items"\ninto = "prices"\nkey = ["page"]\ncolumns = { page = "url" }'


@pytest.mark.parametrize(
    ("sink", "table", "said"),
    [
        ('url = "nothing"', TABLE, "write url as"),
        ('url = "postgresql://u:hunter2@h/d"', TABLE, "a password has no place in the file"),
        (URL + "\npassword = {}", TABLE, "either env or file"),
        (URL + "\nspeed = 3", TABLE, "speed"),
        (URL, TABLE.replace("items", "itmes"), "'items'"),
        (URL, TABLE.replace('"url"', '"ulr"'), "'url'"),
        (URL, TABLE.replace('["page"]', '["pge"]'), "'page'"),
        (URL, TABLE + '\nstatement = "SELECT 1"', "either into or statement"),
        (URL, TABLE.replace('key = ["page"]', ""), "name a key"),
        (URL, TABLE + '\ngone = "delete"', "gone is for rows of pages"),
        (URL, TABLE.replace("items", "pages") + '\nkind = "x"', "only items have a kind"),
        (URL, 'from = "items"\nstatement = "INSERT INTO x VALUES (:y)"\ncolumns = { page = "url" }', "'y'"),
        (URL, "from = 3", "from"),
        ("url = ", TABLE, "not TOML"),
    ],
)
def test_a_bad_mapping_is_refused_in_one_line(tmp_path: Path, sink: str, table: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        read_sinks(write(tmp_path, sink, table), tables_that_ship())
    assert said in str(told.value) and "\n" not in str(told.value) and "hunter2" not in str(told.value)


def test_everything_that_is_wrong_with_a_file_is_told_at_once(tmp_path: Path) -> None:
    table = 'from = "items"\ninto = "prices"\ncolumns = { page = "ulr" }\ngone = "never"'
    file = write(tmp_path, 'url = "postgresql://u:hunter2@h/d"', table)
    with pytest.raises(UsageError) as told:
        read_sinks(file, tables_that_ship())
    wrong = str(told.value).splitlines()
    said = ("a password has", "gone is for", "gone is put", "name a key", "column page is to take")
    assert len(wrong) == len(said) and all(words in line for words, line in zip(said, wrong, strict=True))
    file = write(tmp_path, URL + "\nspeed = 3", "from = 3\n[[sinks.shop.tables]]\ninto = 4")
    with pytest.raises(UsageError) as told:
        read_sinks(file, tables_that_ship())
    assert len(str(told.value).splitlines()) == 3
    good = 'from = "items"\ninto = "prices"\nkey = ["pge"]\nkid = "x"\ncolumns = { page = "url" }'
    with pytest.raises(UsageError) as told:
        read_sinks(write(tmp_path, URL + "\npasword = 3\nspeed = 3", good), tables_that_ship())
    said = ("table 1: unknown setting 'kid'", "'pasword'; did you mean 'password'?", "'speed'", "'pge' is not among")
    assert all(words in line for words, line in zip(said, str(told.value).splitlines(), strict=True))


def test_all_columns_that_a_table_lacks_are_told_at_once(tmp_path: Path) -> None:
    database = tmp_path / "my.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE prices (page TEXT)")
    table = (
        'from = "items"\ninto = "prices"\nkey = ["page"]\ncolumns = { page = "url", euros = "data.n", at = "visit" }'
    )
    [verdict] = check_sinks(write(tmp_path, f'url = "sqlite:///{database}"', table), None)
    assert "euros" in verdict.problem and "at" in verdict.problem.split("euros")[1] and "page" not in verdict.problem


def test_a_password_comes_from_the_environment_or_from_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2\n", encoding="utf-8")
    file.chmod(0o644)
    path = write(tmp_path, f'{URL}\npassword = {{ file = "{file}" }}', TABLE)
    [spec] = read_sinks(path, tables_that_ship()).sinks.values()
    assert spec.password is not None
    with pytest.raises(UsageError, match="chmod 600") as told:
        spec.password.read()
    assert "hunter2" not in str(told.value)
    file.chmod(0o600)
    assert spec.password.read() == "hunter2"
    [spec] = read_sinks(
        write(tmp_path, f'{URL}\npassword = {{ env = "NO_SUCH_SECRET" }}', TABLE), tables_that_ship()
    ).sinks.values()
    assert spec.password is not None
    with pytest.raises(UsageError, match="NO_SUCH_SECRET"):
        spec.password.read()


def test_a_wrong_password_and_a_missing_database_are_one_line_without_the_secret(
    tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    emptied(postgres)
    run(postgres.url, "DROP ROLE IF EXISTS stranger", "CREATE ROLE stranger LOGIN PASSWORD 'right'")
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    url = postgres.url.replace("tester@", "stranger@")
    for wrong, said in ((url, "password authentication failed"), (f"{postgres.url}none", "does not exist")):
        file = write(tmp_path, f'url = "{wrong}"\npassword = {{ env = "SHOP_PASSWORD" }}', TABLE)
        assert main(["sink", "check", str(file)]) == 2
        told = capsys.readouterr()
        assert said in told.out and told.out.count("\n") == 1 and "hunter2" not in told.out + told.err


def test_checking_tries_rows_and_keeps_none(
    kept: Open, page: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = kept()
    crawl.commit(page(1))
    url = f"sqlite:///{tmp_path}/my.db"
    file = write(tmp_path, f'url = "{url}"', TABLE)
    assert main(["sink", "check", str(file), str(crawl.directory)]) == 2
    assert "there is no such database" in capsys.readouterr().out
    assert not (tmp_path / "my.db").exists()
    (tmp_path / "my.db").touch()
    assert main(["sink", "check", str(file), str(crawl.directory)]) == 2
    assert "no such table" in capsys.readouterr().out
    run(url, "CREATE TABLE prices (page TEXT)")
    [verdict] = check_sinks(file, crawl.directory)
    assert (verdict.rows, verdict.problem) == (1, "")
    assert run(url, "SELECT count(*) FROM prices") == [(0,)]
    assert main(["sink", "check", str(file)]) == 0


def test_a_sink_that_cannot_be_reached_is_one_line_however_many_tables_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    tables = f"{TABLE}\n[[sinks.shop.tables]]\n{TABLE.replace('prices', 'others')}"
    file = write(tmp_path, 'url = "postgresql://me@127.0.0.1:1/none"\npassword = { env = "SHOP_PASSWORD" }', tables)
    assert main(["sink", "check", str(file)]) == 2
    told = capsys.readouterr()
    assert told.out.count("\n") == 1 and "SHOP_PASSWORD, which is not set" in told.out


def test_parameters_of_a_statement_are_told_from_casts_and_times() -> None:
    assert named_parameters("SELECT :a::text, '12:30', 5 % 2") == "SELECT %(a)s::text, '12:30', 5 %% 2"


def test_two_processes_make_the_marks_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/my.db"
    (tmp_path / "my.db").touch()
    sinks = [sink(tmp_path, url, PRICES, name) for name in ("one", "two")]
    assert sqlite3.connect(tmp_path / "my.db").execute("SELECT count(*) FROM gossamer_marks").fetchone() == (0,)
    for one in sinks:
        one.close()

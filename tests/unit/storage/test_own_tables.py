"""A package brings a table of its own: named in a setting, it is written, converted, asked and reprocessed like ours."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.storage.tables.contract import Table, TableSpec, column
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.storage.tables.places import declared
from gossamer.testing.storage import visit
from gossamer.values.visit import Link

SOURCE = str(Path(__file__).resolve().parents[3] / "src")

PACKAGE = """
from typing import Annotated
import msgspec
from gossamer.storage.tables.contract import Table, column


class ShoutRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    url: Annotated[str, column("The page's URL.")]
    visit: Annotated[str, column("The visit.")] = ""
    word: Annotated[list[str], column("A word that is shouted.")]
    times: Annotated[list[int], column("How often.", type="INTEGER", fill=1)] = []
    loud: Annotated[bool, column("More than once.")] = False


def rows(told):
    yield ShoutRow(url=told.task.url, visit=told.visit.id, word=["HO", "HE'Y"], loud=bool(told.visit.links))


SHOUTS = Table("shouts", ShoutRow, "Words that pages shout.", rows=rows, is_made=True)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed package that offers the table `shouts`."""
    folder = tmp_path / "site"
    info = folder / "shouting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gossamer.tables]\nshouts = shouting:SHOUTS\n")
    (folder / "shouting.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_table_of_another_package_is_written_and_read_where_the_package_is_not_installed(
    tmp_path: Path, installed: Path
) -> None:
    directory = tmp_path / "crawl"
    log = TableLog(build(TableLogSheet, {"directory": str(directory), "tables": ["pages", "shouts"]}))
    log.append([msgspec.structs.replace(visit(), id="v-1", links=(Link("http://a.test/x"),))], [None])
    expected = [
        ("http://a.test/", "v-1", "HO", 1, True),
        ("http://a.test/", "v-1", "HE'Y", 1, True),
    ]
    with Database(directory) as database:
        assert list(database.ask("SELECT * FROM shouts")) == expected
    # The process that converts has never heard of the package.
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    program = (
        "from pathlib import Path; from gossamer.query.convert import convert; convert(Path(sys.argv[1]), ended=True)"
    )
    subprocess.run([sys.executable, "-c", f"import sys; {program}", str(directory)], check=True, env=environment)
    assert list(directory.glob("tables/shouts/*.parquet"))
    with Database(directory) as database:
        assert list(database.ask("SELECT * FROM shouts_all")) == expected


def test_a_table_that_nobody_offers_is_refused_before_anything_is_written() -> None:
    with pytest.raises(SettingError, match=r"unknown table .pagse.*pages"):
        build(TableLogSheet, {"tables": ["pagse"]})


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "x; DROP VIEW pages"},
        {"columns": [{"name": 'a" --', "type": "VARCHAR"}]},
        {"columns": [{"name": "a", "type": "VARCHAR); COPY"}]},
        {"without": ["a' OR 1=1", "x"]},
    ],
)
def test_a_declaration_that_holds_anything_but_names_and_types_is_not_read(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    plain = {"name": "bad", "columns": [{"name": "a", "type": "VARCHAR"}]}
    path = tmp_path / "state/agent-00/rows/bad.table"
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(plain))
    assert declared(tmp_path) == {"bad": msgspec.convert(plain, TableSpec)}
    path.write_bytes(msgspec.json.encode({**plain, **changes}))
    assert declared(tmp_path) == {}


def test_a_row_type_whose_fields_say_nothing_is_no_table() -> None:
    class Silent(msgspec.Struct, frozen=True):
        """Says nothing of its field."""

        url: str

    class Nameless(msgspec.Struct, frozen=True):
        """Does not name the visit."""

        url: Annotated[str, column("A URL.")]

    with pytest.raises(TypeError, match="has no description"):
        Table("silent", Silent, "Silent.")
    with pytest.raises(TypeError, match="lacks the columns visit"):
        Table("nameless", Nameless, "Nameless.")

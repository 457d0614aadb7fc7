"""The table `samples` keeps every sample of a day, and one of every five minutes for good."""

from collections.abc import Callable
from typing import Any

import pytest

from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.storage.tables.row_tables import COARSE, FINE, FINE_FOR, SAMPLES, SampleRow
from gossamer.values.instants import utc_text

#: Two days, in seconds.
SPAN = 2 * FINE_FOR


def rows() -> list[SampleRow]:
    return [
        SampleRow(taken_at=utc_text(at), agent="agent-00", every=FINE if at % COARSE else COARSE, pages=at)
        for at in range(0, SPAN, FINE)
    ]


@pytest.mark.parametrize("ended", [False, True])
def test_samples_of_the_last_day_are_fine_and_older_ones_are_five_minutes_apart(
    kept: Callable[..., Any], ended: bool
) -> None:
    crawl = kept()
    crawl.add(SAMPLES.name, rows())
    if ended:
        convert(crawl.directory, ended=True)
    with Database(crawl.directory) as database:
        [(old, fine)] = database.ask(
            f"SELECT count(*) FILTER (pages < {FINE_FOR}), count(*) FILTER (pages >= {FINE_FOR}) FROM samples"
        )
    assert (old, fine) == (FINE_FOR // COARSE, FINE_FOR // FINE)


def test_a_file_of_samples_holds_no_row_that_nobody_is_shown(kept: Callable[..., Any]) -> None:
    crawl = kept()
    crawl.add(SAMPLES.name, rows())
    convert(crawl.directory, ended=True)
    [made] = crawl.directory.glob("tables/samples/*.parquet")
    with Database(crawl.directory, only={"samples": [made]}) as database:
        [(shown,)] = database.ask("SELECT count(*) FROM samples")
    assert shown == FINE_FOR // COARSE + FINE_FOR // FINE
    assert made.stat().st_size < 2_000_000

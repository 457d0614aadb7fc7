"""A person's file of scores."""

import asyncio
from pathlib import Path

import pytest

from gossamer.engine.errors import SettingError
from gossamer.frontier.contract import TaskStanding
from gossamer.frontier.order import Scores, WeightedPrioritizer, WeightSheet, read_scores
from gossamer.values.task import Task


def test_the_most_specific_line_holds() -> None:
    scores = Scores(
        [
            "0.9 example.org",
            "0.2 *.example.org",
            "0.4 www.example.org",
            "0.1 https://example.org/archive/*",
            "0.3 https://example.org/archive/2024/*",
            "0.8 https://example.org/archive/2024/best",
        ]
    )
    assert [scores.site(host) for host in ("example.org", "www.example.org", "a.b.example.org", "other.test")] == [
        *(0.9, 0.4, 0.2),
        None,
    ]
    pages = [
        "https://example.org/archive/2024/best",
        "https://example.org/archive/2024/x",
        "https://example.org/archive/",
    ]
    assert [scores.page(url) for url in (*pages, "https://example.org/")] == [0.8, 0.3, 0.1, None]


def test_scores_of_any_size_count_by_their_places() -> None:
    scores = Scores(["12 a.test", "4000000 b.test", "90 c.test"])
    assert [scores.site(host) for host in ("a.test", "c.test", "b.test")] == [0.0, 0.5, 1.0]


def test_bad_lines_are_counted_and_the_first_ten_shown_and_the_others_hold(tmp_path: Path) -> None:
    file = tmp_path / "traffic.txt"
    file.write_bytes(
        b"# visits a day\n0.9 good.test\n" + b"".join(b"no%d a.test\n" % n for n in range(25)) + b"\xff\xfe x y z\n"
    )
    scores = read_scores(str(file))
    assert (scores.read, scores.bad, len(scores.shown)) == (27, 26, 10)
    assert scores.shown[0].startswith("line 3: 'no0'") and scores.site("good.test") == 0.9
    assert scores.trouble.startswith("26 of 27 lines") and scores.trouble.endswith("and 16 more")


def test_a_crawl_begins_with_what_could_be_read_and_tells_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "scores.txt"
    file.write_text("1 a.test\n0 b.test\nso-so c.test\n", encoding="utf-8")
    prioritizer = WeightedPrioritizer(WeightSheet(importance=str(file), site=4.0))
    told: list[str] = []
    prioritizer.report = told.append
    asyncio.run(prioritizer.start())
    assert len(told) == 1 and "line 3: 'so-so'" in told[0]
    tasks = [Task(f"http://{host}.test/", f"{host}.test", 4) for host in "abx"]
    low, high, middle = prioritizer.levels(tasks, [TaskStanding()] * 3)
    assert low < middle < high


def test_a_line_without_end_is_one_bad_line(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("0.5 a.test\n0.5 http://a.test/" + "x" * 9_000 + "\n", encoding="utf-8")
    scores = read_scores(str(file))
    assert scores.bad >= 1 and scores.site("a.test") == 0.5


def test_a_file_that_says_nothing_readable_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "odd.txt"
    file.write_text("much a.test\n", encoding="utf-8")
    with pytest.raises(SettingError, match="line 1"):
        read_scores(str(file))

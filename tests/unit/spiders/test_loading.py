"""A spider's file: which spider is meant, what the file would run it with, and one line where it cannot be loaded."""

import sys
from pathlib import Path

import pytest

from gossamer.spiders.loading import MODULE, load
from gossamer.values.errors import UsageError

HEAD = "import gossamer\nspider = gossamer.Spider('http://a.test/')\n"


def written(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_the_only_spider_of_a_file_is_taken_under_whatever_names(tmp_path: Path) -> None:
    spider, options = load(written(tmp_path, HEAD + "again = spider\n"))
    assert spider.seeds == ("http://a.test/",) and options == {}


@pytest.mark.parametrize(
    "end", ["spider.run(items='x.csv')", "try:\n    spider.run(items='x.csv')\nexcept Exception: pass"]
)
def test_a_file_that_runs_its_spider_ends_there_and_its_options_are_kept(tmp_path: Path, end: str) -> None:
    spider, options = load(written(tmp_path, f"{HEAD}{end}\nraise SystemError('nobody comes here')\n"))
    assert spider.seeds == ("http://a.test/",) and options == {"items": "x.csv"}


def test_what_stands_under_the_guard_of_main_is_not_run(tmp_path: Path) -> None:
    spider, options = load(written(tmp_path, f"{HEAD}if __name__ == '__main__':\n    spider.run(items='x.csv')\n"))
    assert spider.seeds and options == {}


def test_of_several_spiders_one_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, HEAD + "other = gossamer.Spider('http://b.test/')\n")
    with pytest.raises(UsageError, match=r"has several spiders: spider, other; name one, as .*mine\.py:spider"):
        load(file)
    assert load(file, "other")[0].seeds == ("http://b.test/",)
    with pytest.raises(UsageError, match="has no spider called 'third'; it has: spider, other"):
        load(file, "third")


def test_a_class_of_spiders_is_no_spider(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no spider; make one"):
        load(written(tmp_path, "import gossamer\nclass Mine(gossamer.Spider): ...\n"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import gossamer\nspider = (", r"mine\.py:2: .*never closed"),
        ("x = 1\n\ny = x / 0\n", r"mine\.py:3: ZeroDivisionError"),
        ("import nothing_of_this_name\n", r"mine\.py:1: ModuleNotFoundError: .*nothing_of_this_name"),
        ("\x00", "null bytes"),
        ("# coding: no-such-encoding\n", "no-such-encoding"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_in_one_line_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        load(written(tmp_path, text))
    assert "mine.py" in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load(str(tmp_path / "absent.py"))
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load(str(tmp_path))


def test_a_file_whose_system_gives_no_number_for_its_error_is_told_with_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_number(_: Path) -> bytes:
        raise OSError("the share does not answer")

    file = written(tmp_path, HEAD)
    monkeypatch.setattr("pathlib.Path.read_bytes", without_number)
    with pytest.raises(UsageError, match=r"mine\.py cannot be read: the share does not answer$"):
        load(file)


def test_modules_beside_the_file_are_found_behind_those_that_are_installed_and_only_while_it_is_loaded(
    tmp_path: Path,
) -> None:
    (tmp_path / "beside_the_spider.py").write_text("seed = 'http://c.test/'\n")
    (tmp_path / "random.py").write_text("raise SystemError('this is not the one of the library')\n")
    path = list(sys.path)
    text = "import random, gossamer, beside_the_spider\nspider = gossamer.Spider(beside_the_spider.seed)\n"
    try:
        assert load(written(tmp_path, text))[0].seeds == ("http://c.test/",)
    finally:
        sys.modules.pop("beside_the_spider", None)
    assert sys.path == path


def test_classes_of_the_file_find_their_module(tmp_path: Path) -> None:
    load(written(tmp_path, HEAD + "class Book: ...\n"))
    assert sys.modules[MODULE].Book.__module__ == MODULE

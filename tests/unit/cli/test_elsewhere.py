"""Words of other crawlers are answered with options and commands that exist here, and never stand in the way of ours."""

import click
import pytest

from gossamer.cli.elsewhere import _COMMANDS, _OPTIONS, same_command, same_option, same_setting
from gossamer.cli.main import all_commands, find_command


def options_of_a_crawl() -> set[str]:
    return {name for param in find_command("crawl").params for name in param.opts}


@pytest.mark.parametrize("ours", [*_OPTIONS, *_COMMANDS])
def test_the_advice_is_there(ours: str) -> None:
    program, _, rest = ours.partition(" ")
    if program.startswith("--"):
        assert program in options_of_a_crawl()
    elif program == "gossamer":
        assert isinstance(find_command(rest.split()[0]), click.Command)
    else:
        assert "--depth" in ours or "`gossamer cat`" in ours


def test_no_word_of_others_is_one_of_ours() -> None:
    theirs = {word for words in _OPTIONS.values() for word in words.split()}
    assert {f"--{word}" for word in theirs} & options_of_a_crawl() == set()
    assert {word for words in _COMMANDS.values() for word in words.split()} & set(all_commands()) == set()


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ("--max-redirect", ""),
        ("--DEPTH_LIMIT", "; --depth N does the same here"),
        ("depthLimit", "; --depth N does the same here"),
        ("-A", "; --include RE2 or --user-agent TEXT does the same here"),
        ("-a", "; gossamer run FILE SEED does the same here"),
        ("crawlLimiter.maxTimeSeconds", "; --max-time TIME does the same here"),
    ],
)
def test_words_are_compared_without_regard_to_their_spelling_and_letters_are_not(theirs: str, told: str) -> None:
    assert same_option(theirs) == told


def test_advice_that_a_command_does_not_have_is_none() -> None:
    assert same_option("-H", {"--header"}) == "; --header FIELD does the same here"
    assert same_option("--level", {"--header"}) == ""
    assert same_command("nothing") == ""


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ("DEPTH_LIMIT", "; depth=N does the same here"),
        ("wait", "; delay=TIME does the same here"),
        ("disposition.minDelayMs", "; delay=TIME does the same here"),
        ("ROBOTSTXT_OBEY", "; robots does the same here"),
        ("download_timeout", "; http.deadline=TIME does the same here"),
        ("-H", "; scope=any or header=FIELD does the same here"),
        ("user_agent", ""),
        ("any.timeout", ""),
        ("nothing", ""),
    ],
)
def test_a_setting_of_others_is_answered_as_set_takes_ours(theirs: str, told: str) -> None:
    assert same_setting(theirs) == told

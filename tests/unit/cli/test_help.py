"""Help in portions: what people use fits two screens, a group or everything is there for the asking, and examples work."""

import contextlib
import re
import shlex
from pathlib import Path

import click
import pytest

from gossamer.cli.helping import HelpInPortions, opened
from gossamer.cli.main import all_commands, commands, find_command, main
from gossamer.cli.options import read_options
from gossamer.crawls.live import option_of
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import Property, build, properties
from gossamer.values.errors import UsageError

#: Two screens of a terminal.
TWO_SCREENS = 100

OLD_NAMES = [prop for prop in properties(all_options()) if prop.was]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def above() -> click.Context:
    """The context that a command has in use: it says how help is asked for."""
    return click.Context(commands, info_name="gossamer", **commands.context_settings)


def options_in(text: str) -> set[str]:
    return set(re.findall(r"^ {2}(?:-\w, )?(--[a-z0-9-]+)", text, re.MULTILINE))


def test_the_help_of_a_crawl_fits_two_screens_and_shows_thirty_options(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "crawl", "--help")
    assert text.count("\n") <= TWO_SCREENS
    assert 25 <= len(options_in(text)) <= 35


def test_everything_is_there_for_the_asking(capsys: pytest.CaptureFixture[str]) -> None:
    shown = options_in(told(capsys, "crawl", "--help", "all"))
    known = {name for param in find_command("crawl").params for name in param.opts if name.startswith("--")}
    hidden = {name for param in find_command("crawl").params if getattr(param, "hidden", False) for name in param.opts}
    assert known - hidden - {f"--{prop.was.replace('_', '-')}" for prop in OLD_NAMES} <= shown
    names = re.findall(r"^ {2}([a-z-]+) {2}", told(capsys, "--help", "all"), re.MULTILINE)
    assert set(all_commands()) <= set(names)


@pytest.mark.parametrize("asked", ["politeness", "Polite", "POLITENESS"])
def test_a_group_is_shown_whole_and_alone(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "crawl", "--help", asked)
    assert {"--delay", "--robots", "--robots-cache", "--linger"} <= options_in(text)
    assert "--scope" not in options_in(text)
    assert "Example: gossamer crawl" in text


def test_an_unknown_group_is_one_line_that_names_the_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crawl", "--help", "jam"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "--help knows no group 'jam'; groups: start, scope, limits" in err


def test_gossamer_alone_prints_its_help_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == told(capsys, "--help") == told(capsys, "help")


def grouped() -> list[tuple[str, str]]:
    found = []
    for command in (commands, find_command("crawl")):
        assert isinstance(command, HelpInPortions)
        groups = command.groups(click.Context(command, info_name=command.name))
        found += [(heading, group.example) for heading, group in groups.items()]
    return found


@pytest.mark.parametrize(("heading", "example"), grouped(), ids=lambda one: one[:20])
def test_each_group_has_an_example_whose_options_are_there(heading: str, example: str) -> None:
    assert example, heading
    program, name, *arguments = shlex.split(example.partition(" > ")[0])
    command = find_command(name)
    if isinstance(command, click.Group):
        assert arguments.pop(0) in command.list_commands(click.Context(command))
        return
    assert program == "gossamer"
    with contextlib.suppress(click.exceptions.Exit):  # the example of the last group asks for help
        command.make_context(name, arguments, parent=above())


#: A value that each of them takes.
VALUES = {"normalize": "www", "ads": "keep", "analysis": "full", "irrelevant_hops": "3", "mobile_content": "text"}
VALUES |= {"mobile_elements": "h1"}


@pytest.mark.parametrize("prop", OLD_NAMES, ids=lambda prop: prop.was)
def test_an_old_name_of_an_option_is_understood_and_not_shown(
    prop: Property, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = VALUES[prop.name]
    context = find_command("crawl").make_context("crawl", [f"--{prop.was.replace('_', '-')}", value], parent=above())
    assert context.params[prop.name] in (value, (value,))
    assert f"--{prop.was.replace('_', '-')} " not in told(capsys, "crawl", "--help", "all")
    config = tmp_path / "c.toml"
    config.write_text(f"{prop.was} = {[value] if prop.type.startswith('tuple') else value!r}\n")
    expected = getattr(build(all_options(), {prop.name: value}), prop.name)
    assert getattr(read_options({}, str(config)), prop.name) == expected
    assert getattr(build(all_options(), {prop.was: value}), prop.name) == expected
    assert option_of(prop.was) == prop.name


@pytest.mark.parametrize(
    ("output", "why"),
    [("/dev/full", "No space left on device"), ("/dev/full/a", "Not a directory"), ("/dev", "Is a dir")],
)
def test_an_output_that_cannot_be_written_is_told_by_its_name(output: str, why: str) -> None:
    """A short answer meets a full disk when its file is closed."""
    with pytest.raises(UsageError, match=f"^{output} cannot be written: {why}"), opened(output) as out:
        out.write("a short answer")


def test_a_file_that_fails_while_an_output_is_open_is_not_taken_for_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), opened(str(tmp_path / "out")):
        (tmp_path / "absent").read_bytes()

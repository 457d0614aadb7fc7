"""Nothing that a stranger wrote commands a terminal, whichever command shows it."""

import ast
import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gossamer.cli
from gossamer.cli import saying
from gossamer.cli.saying import say_bytes, say_json, say_lines, seen
from gossamer.testing.clock import HUNG_AFTER

#: ESC, DEL, a command of C1, marks that turn the direction of writing, and characters that nobody sees.
HOSTILE = "\x00\x07\x08\x1b]0;owned\x07\x7f\x9b31m\u202e\u2066\u200f\u2028\u200b\ufeff\ue000\U000e0041"


def shown_on_a_terminal(code: str) -> str:
    """What a terminal gets from Python that runs this code behind the guard."""
    ours, theirs = pty.openpty()
    program = f"from gossamer.cli.saying import *\nimport sys\nguard_terminal()\n{code}\n"
    with subprocess.Popen(
        [sys.executable, "-X", "utf8", "-c", program], stdout=theirs, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        got = bytearray()
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            got += piece
        os.close(ours)
        assert process.wait(HUNG_AFTER) == 0, process.stderr.read() if process.stderr else b""
    return got.decode().replace("\r\n", "\n")


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_a_terminal_gets_no_command_of_a_stranger() -> None:
    text = f"title {HOSTILE} é 漢字 end\n\tnext"
    got = shown_on_a_terminal(f"print({text!r}); sys.stdout.write({HOSTILE!r}); say_bytes([{HOSTILE.encode()!r}])")
    assert is_harmless(got)
    assert got.startswith("title \\u0000") and "é 漢字 end\n\tnext\n" in got
    assert got.count("\\u202e") == 3


def test_a_terminal_gets_the_colours_of_the_program() -> None:
    assert shown_on_a_terminal("print('\\x1b[1mfound\\x1b[0m \\x1b[2Jx')") == "\x1b[1mfound\x1b[0m \\u001b[2Jx\n"


def test_a_screen_is_emptied_only_by_the_program() -> None:
    assert shown_on_a_terminal("empty_terminal(); print('x')").startswith("\x1b[2J")


def test_people_s_own_code_has_the_terminal_for_itself() -> None:
    assert "\x1b[2J" in shown_on_a_terminal("print('1'); leave_terminal(); print('\\x1b[2J2')")


def test_a_character_that_is_cut_by_pieces_is_whole_on_a_terminal() -> None:
    assert shown_on_a_terminal("say_bytes([b'a\\xc3', b'\\xa9\\r', b'\\nb\\xff'])") == "aé\nb\\xff"


def test_a_pipe_gets_bytes_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="utf-8"))
    saying.guard_terminal()
    say_bytes([HOSTILE.encode(), b"\xff"])
    assert buffer.getvalue() == HOSTILE.encode() + b"\xff"


def test_json_is_printable_wherever_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"title": HOSTILE, "é": ["漢字"]})
    out = capsys.readouterr().out
    assert is_harmless(out) and out.count("\n") == 1 and "漢字" in out
    assert msgspec.json.decode(out) == {"title": HOSTILE, "é": ["漢字"]}


def test_a_line_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_lines(["one", f"two\nforged\r{HOSTILE}"])
    out = capsys.readouterr().out
    assert is_harmless(out) and out.count("\n") == 2


def test_what_can_be_seen_stays_as_it_is() -> None:
    assert seen("é 漢字\n\tx") == "é 漢字\n\tx"


def _prints_json(node: ast.AST) -> bool:
    """It writes JSON to standard output by another way than the one that is safe."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    if name not in ("print", "click.echo", "sys.stdout.write", "sys.stdout.writelines", "sys.stdout.buffer.write"):
        return False
    written = " ".join(ast.unparse(argument) for argument in node.args)
    return ("json.encode" in written or "json.dumps" in written) and "printable" not in written


@pytest.mark.parametrize("path", sorted(Path(gossamer.cli.__path__[0]).glob("*.py")), ids=lambda path: path.stem)
def test_every_command_prints_json_in_the_one_safe_way(path: Path) -> None:
    walked: Callable[[Any], Any] = ast.walk
    tree = ast.parse(path.read_text())
    lines = [node.lineno for node in walked(tree) if _prints_json(node)]
    if path.stem != "new":  # a wiring, which people write
        assert not lines or path.stem == "saying", lines


@pytest.mark.parametrize(
    ("called", "shown"), [("", "gossamer"), ("../gossamer", "../gossamer"), ("a b/gossamer", "'a b/gossamer'")]
)
def test_a_hint_begins_with_the_launcher_that_was_called(called: str, shown: str) -> None:
    own = ["-X", f"called={called}"] if called else []
    done = subprocess.run([sys.executable, *own, "-P", "-m", "gossamer", "nonsense"], capture_output=True, text=True)
    assert done.stderr == f"gossamer: there is no command 'nonsense'; `{shown} --help all` lists them\n"


@pytest.mark.parametrize(
    ("command", "shown"), [("status", "`x/gossamer resume` goes on"), ("stop", "Usage: x/gossamer")]
)
def test_help_can_be_copied_where_a_launcher_was_called(command: str, shown: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "called=x/gossamer", "-P", "-m", "gossamer", command, "--help"],
        capture_output=True,
        text=True,
    )
    assert shown in done.stdout

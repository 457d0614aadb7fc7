"""RE2 patterns, globs and domain constraints, as filters and expressions write them: linear, whatever they are (fault 63)."""

from collections.abc import Sequence
from typing import Any

import re2

from gossamer.engine.errors import SettingError
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical, host_of

#: Bytes of the longest pattern (fault 63): longer ones are lists, which belong into a filter of their own.
MAX_PATTERN_BYTES = 1024

#: Bytes of the words that one pattern looks for together: RE2 keeps its states for 2 KB of words of any script, and its time then
#: does not depend on their number. For 8 KB of Greek words it does not, and takes 500 times as long.
MAX_JOINED_BYTES = 2048


def compile_pattern(pattern: str) -> Any:
    """A compiled RE2 pattern, which searches in linear time. Raises ValueError: it is too long, or RE2 refuses it; in one line."""
    if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN_BYTES:
        raise ValueError(f"{pattern[:40]!r}... is too long; at most {MAX_PATTERN_BYTES} bytes a pattern")
    return _compiled(pattern)


def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _quiet())
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"{pattern[:MAX_PATTERN_BYTES]!r} is not an RE2 pattern: {shown}") from None


def _quiet() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


def compile_words(words: Sequence[str], before: str = "", behind: str = "") -> list[Any]:
    """Patterns of which one matches where one of the words (RE2 patterns) stands, in either case, with these patterns before
    and behind it; as few as can be. Raises ValueError: one of them is too long, or no text."""
    groups: list[list[str]] = []
    size = 0
    for word in words:
        length = len(word.encode("utf-8", "replace"))
        if length > MAX_PATTERN_BYTES:
            raise ValueError(f"{word[:40]!r}... is too long; at most {MAX_PATTERN_BYTES} bytes a word")
        if not groups or size + length > MAX_JOINED_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(word)
        size += length + 1
    return [_compiled(f"(?i){before}(?:{'|'.join(group)}){behind}") for group in groups]


def glob(pattern: str, *, segments: bool) -> str:
    """A glob as an RE2 pattern for a whole text: `*` any run (in paths: without `/`), `**` any run, `?` one character."""
    found = []
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if pattern.startswith("**", place):
            found.append(".*")
            place += 1
        elif letter == "*":
            found.append("[^/]*" if segments else ".*")
        elif letter == "?":
            found.append("[^/]" if segments else ".")
        else:
            found.append(letter if letter.isalnum() or ord(letter) > 127 else f"\\{letter}")
        place += 1
    return f"(?s)^{''.join(found)}$"


def any_of(name: str, patterns: Sequence[str]) -> Any:
    """One pattern that matches where any of them does; None without any. Each must be whole by itself."""
    if not patterns:
        return None
    try:
        for pattern in patterns:
            compile_pattern(pattern)
    except ValueError as error:
        raise SettingError(f"{name}: {error}") from None
    try:
        return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns), _quiet())
    except re2.error:
        raise SettingError(f"{name}: {len(patterns)} patterns are too much for one expression; use fewer") from None


# -- domain constraints (Hunyadi 2007, section 5.3.2): a host name written backwards, for `--only`, `--never` and `domain()`,
# from the top-level domain on, and compared label by label without regard to case:
#
# ========== ==========================================
# `hu.bme`   the host `bme.hu` alone
# `hu.bme.+` everything below `bme.hu`, not itself
# `hu.bme.*` `bme.hu` and everything below
# ========== ==========================================

#: What belongs to a URL and not to a host name, though the parser might make one of it.
_UNFIT = frozenset("/?#@\\%:[] \t\r\n")


class DomainConstraint:
    """One constraint. A label in another script is compared in its ASCII form, as host names are. Raises ValueError: it is no
    host name in reversed notation; says how one is written."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        labels = self.text.lower().rstrip(".").split(".")
        self._below = labels[-1] in ("+", "*")
        self._itself = labels[-1] != "+"
        if self._below:
            labels.pop()
        self._name = _host(labels, self.text)
        self._ending = f".{self._name}" if self._name else ""

    def __repr__(self) -> str:
        return f"<DomainConstraint {self.text}>"

    def holds(self, host: str) -> bool:
        """Whether a canonical host name matches."""
        host = host.rstrip(".")
        if host == self._name:
            return self._itself
        if not self._below or not host:
            return False
        # Without a name (`*`, `+`) the constraint is the root, which everything is below.
        return not self._name or (host.endswith(self._ending) and not host[-1].isdigit() and ":" not in host)


def _host(labels: list[str], text: str) -> str:
    """The host name that the reversed labels stand for, in its canonical form; empty for the root."""
    if not labels:
        return ""
    advice = "write the host backwards, as hu.bme, hu.bme.+ or hu.bme.*"
    if "" in labels or {"+", "*"} & set("".join(labels)) or _UNFIT & set(text):
        raise ValueError(f"{text!r} is not a domain constraint; {advice}")
    try:
        return host_of(canonical(f"http://{'.'.join(reversed(labels))}/"))
    except UnreadableUrl:
        raise ValueError(f"{text!r} names no host; {advice}") from None

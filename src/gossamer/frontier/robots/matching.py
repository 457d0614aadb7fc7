"""One agent's rules, made ready to judge many URLs. Pure; built by :mod:`gossamer.frontier.robots.rules` when first asked.

A rule matches where its pattern fits the beginning of the path; `*` stands for any text and a final `$` for the end
(RFC 9309, 2.2.2 and 2.2.3). The longest pattern wins, and on a tie the one that allows. So plain patterns are looked
up by their lengths, longest first, and only patterns with `*` are tried one by one, as long as they could still win.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

#: Text that must be rewritten before a path is compared as RFC 9309, 2.2.2 demands: escapes, what has a meaning in
#: patterns, and everything that is not ASCII.
_REWRITE = re.compile(r"%[0-9A-Fa-f]{2}|[*$]|[^\x00-\x7f]+")

#: RFC 3986, 2.3: an escape of one of these stands for the character itself.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

#: Where the path of a URL begins, should it not begin with a slash.
_PATH_START = re.compile(r"[/?;]")

#: Up to so many plain patterns it is cheaper to ask once whether any of them fits (15 ns each) than to look up the
#: path by each of their lengths (100 ns each); most URLs fit none.
MANY_PATTERNS = 256


def path_of(url: str) -> str:
    """Path and query of a URL as they stand, without the fragment; begins with `/` whatever the URL is.

    Canonical URLs take the first lines. Others are cut as Google's parser cuts them: what stands before `://` is a
    scheme unless a path began already, and what has no path has the path `/`.
    """
    if url.startswith(("http://", "https://")):
        slash = url.find("/", 8)
        authority = url[8:slash]
        if slash > 0 and "?" not in authority and ";" not in authority and "#" not in authority:
            return url[slash:] if "#" not in url else url[slash : url.index("#")]
    offset = 2 if url.startswith("//") else 0
    scheme_end = url.find("://", offset)
    first = _PATH_START.search(url, offset)
    if scheme_end < 0 or (first is not None and first.start() < scheme_end):
        start = first
    else:
        start = _PATH_START.search(url, scheme_end + 3)
    if start is None:
        return "/"
    begin, fragment = start.start(), url.find("#", offset)
    if 0 <= fragment < begin:
        return "/"
    path = url[begin:] if fragment < 0 else url[begin:fragment]
    return path if path.startswith("/") else f"/{path}"


def _rewritten(match: re.Match[str]) -> str:
    text = match[0]
    if text[0] == "%":
        octet = chr(int(text[1:], 16))
        return octet if octet in _UNRESERVED else text.upper()
    if text == "*":
        return "%2A"
    if text == "$":
        return "%24"
    return "".join(f"%{octet:02X}" for octet in text.encode("utf-8", "surrogatepass"))


def comparable_path(path: str) -> str:
    """A path in the one form in which RFC 9309 compares: unreserved characters plain, others as `%XX`."""
    if path.isascii() and "%" not in path and "*" not in path and "$" not in path:
        return path
    return _REWRITE.sub(_rewritten, path)


def comparable_pattern(pattern: str) -> str:
    """The same for a pattern: `*` anywhere and `$` at the end keep their meaning, another `$` is a character."""
    body, end = (pattern[:-1], "$") if pattern.endswith("$") else (pattern, "")
    return "*".join(_REWRITE.sub(_rewritten, part) for part in body.split("*")) + end


class _Wild(NamedTuple):
    """A pattern with `*`: it begins with `head`, has `parts` in this order, and, where it is anchored, ends with `tail`."""

    rank: int
    head: str
    parts: tuple[str, ...]
    tail: str | None
    rule: int

    def fits(self, path: str) -> bool:
        """Of a path that begins with `head`. Linear: every part is looked for once, behind the one before."""
        at = len(self.head)
        for part in self.parts:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return self.tail is None or (len(path) - len(self.tail) >= at and path.endswith(self.tail))


def _wild(rank: int, pattern: str, rule: int) -> _Wild:
    is_anchored = pattern.endswith("$")
    head, *rest = (pattern[:-1] if is_anchored else pattern).split("*")
    tail = rest.pop() if is_anchored else None
    return _Wild(rank, head, tuple(filter(None, rest)), tail, rule)


class Matcher:
    """The rules of one agent, compiled.

    Args:
        rules: (allows, pattern) in the order of the file; a rule's number is its place in here.
    """

    def __init__(self, rules: Iterable[tuple[bool, str]]) -> None:
        self._plain: dict[str, tuple[int, int]] = {}
        self._whole: dict[str, tuple[int, int]] = {}
        wild: list[_Wild] = []
        for number, (allow, pattern) in enumerate(rules):
            self._add(wild, allow, pattern, number)
            if allow and (index := pattern.rfind("/index.htm")) >= 0 and "/" not in pattern[index + 1 :]:
                # As Google's parser has it: who allows a folder's index page allows the folder's own URL.
                self._add(wild, allow, f"{pattern[: index + 1]}$", number)
        self._lengths = sorted({len(pattern) for pattern in self._plain}, reverse=True)
        self._starts = tuple(self._plain) if len(self._plain) <= MANY_PATTERNS else "/"
        # Rank and head stand in front, since they alone are looked at for most paths.
        self._wild = tuple((one.rank, one.head, one) for one in sorted(wild, key=lambda one: -one.rank))

    def _add(self, wild: list[_Wild], allow: bool, pattern: str, number: int) -> None:
        if not pattern.startswith(("/", "*")):
            return  # Paths begin with a slash: it can never fit. An empty pattern says nothing.
        rank = 2 * len(pattern) + allow
        if "*" in pattern:
            wild.append(_wild(rank, pattern, number))
        else:
            table, key = (self._whole, pattern[:-1]) if pattern.endswith("$") else (self._plain, pattern)
            if rank > table.get(key, (-1, 0))[0]:
                table[key] = (rank, number)

    def find(self, path: str) -> int:
        """The number of the rule that decides about a path that begins with a slash; -1 where none fits.

        Ranks order the rules: twice the pattern's length, and one more for those that allow.
        """
        rank, found = self._whole.get(path, (-1, -1))
        if path.startswith(self._starts):
            for length in self._lengths:
                if (hit := self._plain.get(path[:length])) is not None:
                    rank, found = max((rank, found), hit)
                    break
        for wild_rank, head, one in self._wild:
            if wild_rank <= rank:
                break
            if path.startswith(head) and one.fits(path):
                return one.rule
        return found

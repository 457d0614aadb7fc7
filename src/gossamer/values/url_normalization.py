"""The normal form of a URL: what is left when spellings of one page are folded into one (row R2, fault 37).

Place in the flow: the links stage calls it on every canonical URL (`url.canonical`), the seeds are read through it, and
`gossamer normalize` shows it. The WHATWG parser has done what cannot be a choice, since a URL is not one without it: scheme and
host in lower case (names in ASCII, addresses in numbers), default port and dot segments gone, an empty path made `/`, white space
and backslashes mended; and fragment and user-info are never kept. What remains of RFC 3986, section 6, and of Ridgway 2010, section
2.2.1, are the steps below: each may fold two pages into one that a server tells apart, so each is a choice.

Pure: the lists of parameters are handed in.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.patterns import lazy_pattern
from gossamer.values.url import authority_of, canonical, host_of, with_host

Step = Literal[
    "escapes",
    "trailing-dot",
    "sessions",
    "tracking",
    "unused",
    "defaults",
    "empty-query",
    "sort-query",
    "index-pages",
    "slashes",
    "www",
]
"""The effect of each step, in the order in which they are taken:

============== ============================================================================================
`escapes`      `%7e` becomes `~` and `%c3` becomes `%C3`: RFC 3986, 6.2.2.1 and 6.2.2.2 call them equal
`trailing-dot` `http://a.test./` loses the dot of the root of all names
`sessions`     session identifiers leave path and query, by the list of parameters
`tracking`     parameters that only say where a visitor came from leave the query, by the same list
`unused`       parameters that a list of the user's says change nothing leave the query
`defaults`     so do those with the value that such a list says a server takes anyway
`empty-query`  a `?` with nothing behind it, and `&` beside nothing
`sort-query`   parameters in the order of their bytes; those of one name keep theirs
`index-pages`  `/index.html` becomes `/`
`slashes`      `//` in a path becomes `/`
`www`          `www.` leaves the host
============== ============================================================================================
"""

STEPS: tuple[Step, ...] = get_args(Step)

#: Steps that hold unless the user says otherwise. The others are right for many sites and wrong for some: order can matter to a
#: server, `index.html` may be another page than `/`, and `www.` another host.
#: Steps obey their list: the shipped one says nothing of `unused` and `defaults`, which only people know who know a site.
USUAL: tuple[Step, ...] = ("escapes", "trailing-dot", "sessions", "tracking", "unused", "defaults", "empty-query")


def chosen(words: Iterable[str], steps: Iterable[Step] = USUAL) -> tuple[Step, ...]:
    """The steps after a person's wishes: `sort-query` adds one to those that are usual, `no-tracking` takes one away. Raises
    ValueError: there is no such step; lists those that are."""
    found: set[str] = set(steps)
    for word in words:
        name = word.strip().lower()
        step = name.removeprefix("no-")
        if step not in STEPS:
            raise ValueError(
                f"there is no step {word!r} of normalisation; known, each also with `no-` in front: {', '.join(STEPS)}"
            )
        (found.add if name == step else found.discard)(step)
    return tuple(step for step in STEPS if step in found)


Kind = Literal["tracking", "session", "maybe-session", "unused", "default"]

#: The step that leaves out parameters of a kind.
_STEP_OF: dict[Kind, Step] = {
    "tracking": "tracking",
    "session": "sessions",
    "maybe-session": "sessions",
    "unused": "unused",
    "default": "defaults",
}


class Parameter(msgspec.Struct, frozen=True):
    """A parameter to leave out, as a list names it."""

    kind: Kind
    """`maybe-session`: only where its value looks like an identifier; `default`: only with that value."""
    name: str
    """In lower case; with a `*` at its end, every name that begins so."""
    value: str = ""
    """Of a `default`."""


def read_parameters(lines: Iterable[str]) -> list[Parameter]:
    """The parameters of a list: `KIND NAME` on each line, or `default NAME=VALUE`; `#` begins a comment. Raises ValueError: a
    line says something else; says which and what would be right."""
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        kind, named = words[0], "".join(words[1:2])
        name, equals, value = named.partition("=") if kind == "default" else (named, "", "")
        of_form = len(words) == 2 and kind in get_args(Kind) and bool(equals) == (kind == "default")
        if not of_form or name in ("", "*") or "*" in (name if equals else name[:-1]):
            raise ValueError(
                f"line {number}: {line.strip()[:80]!r}; write a kind ({', '.join(get_args(Kind))}) and a name, "
                "or default NAME=VALUE"
            )
        found.append(msgspec.convert({"kind": kind, "name": name.lower(), "value": value}, Parameter))
    return found


class _Names:
    """Names, some by their beginning. One set look-up, and one comparison for all beginnings."""

    def __init__(self, names: Iterable[str]) -> None:
        names = list(names)
        self._whole = frozenset(name for name in names if not name.endswith("*"))
        self._starts = tuple(name[:-1] for name in names if name.endswith("*"))

    def __contains__(self, name: str) -> bool:
        return name in self._whole or name.startswith(self._starts)


_ESCAPE = lazy_pattern(r"%[0-9A-Fa-f]{2}")
#: RFC 3986, section 2.3: an escape of one of these is the same URL as the letter itself.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEXADECIMAL = "0123456789ABCDEFabcdef"
#: Every spelling of an escape, and what it becomes.
_ESCAPES = {
    f"%{high}{low}": letter if (letter := chr(int(high + low, 16))) in _UNRESERVED else f"%{high}{low}".upper()
    for high in _HEXADECIMAL
    for low in _HEXADECIMAL
}

#: Texts that generators make and people do not write: hexadecimal digits of both kinds, a long run of letters and digits, a UUID.
_IDENTIFIER = lazy_pattern(
    r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])(?:[0-9A-Fa-f]{8,}|[0-9A-Za-z]{20,}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
)

#: Cookieless sessions of ASP.NET, a segment as `(S(lit3py55t21z5v55vlm25s55))`; also its authentication and anonymous tickets.
_ASP = lazy_pattern(r"/\((?:[ASFX]\([^()/?]*\))+\)(?=/)")

#: File names that servers show for a directory: the defaults of Apache, nginx, IIS and PHP hosts.
_INDEX = lazy_pattern(
    r"/(?:index\.(?:html?|php[345]?|aspx?|jsp|shtml|xhtml|cgi)|default\.(?:aspx?|html?))$", re.IGNORECASE
)

_SLASHES = lazy_pattern("/{2,}")


#: Names of harmless parameters that are remembered; then all are forgotten, which costs each one more look.
REMEMBERED_NAMES = 4_096


def aliases_of(pairs: Sequence[str]) -> dict[str, str]:
    """Names of hosts from `OTHER=NAME` texts, in their canonical form. Raises UsageError: one has another form, or leads to a
    name that is an alias itself."""
    found: dict[str, str] = {}
    for pair in pairs:
        try:
            other, name = (host_of(canonical(f"http://{host.strip()}/")) for host in pair.split("="))
        except ValueError:
            raise UsageError(f"alias {pair!r}: write OTHER=NAME, as www.example.org=example.org") from None
        found[other] = name
    chained = sorted(set(found) & set(found.values()))
    if chained:
        raise UsageError(
            f"aliases: {chained[0]!r} is given both as a second name and as a first one; use it in one place"
        )
    return found


class Normaliser:
    """Takes the chosen steps on a canonical URL. Its result is its own normal form."""

    def __init__(
        self,
        steps: Collection[Step] = USUAL,
        parameters: Iterable[Parameter] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        """A normaliser that takes these steps; `sessions`, `tracking`, `unused` and `defaults` leave out these parameters.
        `aliases` are other names of hosts, with the name to use instead, which is no alias itself; whatever the steps."""
        self._aliases = dict(aliases or {})
        self._steps = frozenset(steps)
        parameters = [one for one in parameters if _STEP_OF[one.kind] in self._steps]
        self._dropped = _Names(one.name for one in parameters if one.kind in ("tracking", "session", "unused"))
        self._doubtful = _Names(one.name for one in parameters if one.kind == "maybe-session")
        self._defaults: dict[str, set[str]] = {}
        for one in parameters:
            if one.kind == "default":
                self._defaults.setdefault(one.name, set()).add(one.value)
        whole = [re.escape(one.name) for one in parameters if one.kind == "session" and not one.name.endswith("*")]
        # Session identifiers behind a semicolon, as `;jsessionid=0AFE`, up to the next separator.
        self._in_path = re.compile(rf";(?:{'|'.join(whole)})=[^/;?]*", re.IGNORECASE) if whole else None
        self._escapes = "escapes" in self._steps
        self._drops_dot = "trailing-dot" in self._steps
        self._sorts = "sort-query" in self._steps
        self._drops_empty = "empty-query" in self._steps
        self._harmless: set[str] = set()
        """Names of parameters that are known to stay, within a bound: most queries are made of the same few."""
        self._changes_any = bool(self._aliases) or not self._steps.isdisjoint(("index-pages", "slashes", "www"))

    def of_each(self, urls: Sequence[str]) -> list[str]:
        """The normal forms of canonical URLs that differ, each once; of many with nothing that the steps look for, at once."""
        whole = "\n".join(urls)
        is_normal = not self._changes_any and not any(mark in whole for mark in ("?", "%", ";", "./", ".:", "/("))
        return list(urls if is_normal else dict.fromkeys(map(self, urls)))

    def __call__(self, url: str) -> str:
        """The normal form of a canonical URL. One without a host (`mailto:`) is left as it is."""
        # Nearly all URLs hold nothing of what the steps look for, which is quickly seen.
        if not (
            "?" in url or "%" in url or ";" in url or "./" in url or ".:" in url or "/(" in url or self._changes_any
        ):
            return url
        if not url.startswith("//", url.find(":") + 1):
            return url
        if self._escapes and "%" in url:
            slash = url.find("/", url.find("://") + 3)  # escapes in a host are the parser's matter
            if slash >= 0:
                url = url[:slash] + _ESCAPE.sub(lambda match: _ESCAPES[match[0]], url[slash:])
        if self._drops_dot and ("./" in url or ".:" in url):
            authority = authority_of(url)
            host, colon, port = authority.partition(":")
            bare = host.rstrip(".")
            if bare not in ("", host):
                url = url.replace(f"://{authority}", f"://{bare}{colon}{port}", 1)
        if ";" in url or "/(" in url or self._changes_any:
            url = self._with_path_folded(url)
        if "?" in url:
            url = self._with_query_folded(url)
        return url

    def _with_path_folded(self, url: str) -> str:
        path, mark, query = url.partition("?")
        slash = path.find("/", path.find("://") + 3)
        before, path = path[:slash], path[slash:]
        folded = path
        if "sessions" in self._steps:
            folded = _ASP.sub("", self._in_path.sub("", folded) if self._in_path else folded)
        if "slashes" in self._steps:
            folded = _SLASHES.sub("/", folded)
        if "index-pages" in self._steps:
            folded = _INDEX.sub("/", folded)
        if "www" in self._steps:
            before = before.replace("://www.", "://", 1)
        if self._aliases:
            name = self._aliases.get(host_of(before))
            before = before if name is None else with_host(before, name)
        if folded == path:
            return before + path + mark + query
        # The part that has gone may have hidden a dot segment, and a path never begins with two slashes by our doing.
        try:
            return canonical(before + (folded or "/") + mark + query)
        except UnreadableUrl:
            return url

    def _with_query_folded(self, url: str) -> str:
        before, _, query = url.partition("?")
        parts = query.split("&")
        harmless = self._harmless
        for one in parts:
            if one.partition("=")[0] not in harmless:
                break
        else:
            if not self._sorts:
                return url
        kept = [one for one in parts if not self._is_dropped(one)]
        if self._sorts:
            kept.sort(key=lambda parameter: parameter.partition("=")[0])
        if kept == parts:
            return url
        # Where nothing is left, the question mark has nothing to say any more.
        return f"{before}?{'&'.join(kept)}" if kept else before

    def _is_dropped(self, parameter: str) -> bool:
        name, _, value = parameter.partition("=")
        if not parameter:
            return self._drops_empty
        lower = name.lower()
        if lower in self._dropped:
            return True
        if lower in self._doubtful:
            return _IDENTIFIER.fullmatch(value) is not None
        if lower in self._defaults:
            return value in self._defaults[lower]
        if len(self._harmless) >= REMEMBERED_NAMES:
            self._harmless.clear()
        self._harmless.add(name)
        return False


Normalise = Callable[[str], str]
"""From a canonical URL its normal form."""

"""The vocabulary of the filter language: what each predicate looks at, and how its arguments become a test.

A table of values; `docs/filters.md` lists it for users. Other packages add words by the entry point `gossamer.predicates`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from gossamer.engine.errors import SettingError, UnknownName
from gossamer.engine.subjects import offered
from gossamer.expressions.contract import Predicate
from gossamer.values.errors import UnreadableUrl
from gossamer.values.patterns import compiled_re2
from gossamer.values.url import canonical, host_of, path_of, scheme_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# -- patterns, globs and domain constraints, as filters and expressions write them: linear, whatever they are (fault 63)

#: Bytes of the longest pattern: longer ones are lists, which belong into a filter of their own.
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
        return compiled_re2(pattern)
    except ValueError as error:
        told = str(error)
        lacks = "; RE2 has neither look-around nor back-references"
        hint = lacks if "perl operator" in told or "escape" in told else ""
        raise ValueError(f"{pattern[:MAX_PATTERN_BYTES]!r} is not an RE2 pattern: {told}{hint}") from None


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
        return _compiled("|".join(f"(?:{pattern})" for pattern in patterns))
    except ValueError:
        raise SettingError(f"{name}: {len(patterns)} patterns are too much for one expression; use fewer") from None


# -- domain constraints (Hunyadi 2007, section 5.3.2): a host name written backwards, for `--only`, `--never` and `domain()`,
# from the top-level domain on, and compared label by label without regard to case:
#
# ========== ==========================================
# `hu.bme`   the host `bme.hu` alone
# `hu.bme.+` everything below `bme.hu`, not itself
# `hu.bme.*` `bme.hu` and everything below
# ========== ==========================================

#: Characters that belong to a URL and not to a host name, though the parser might make one of it.
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


# -- parts of a canonical URL: slices of the text, never a second parser (fault 34)


def path(url: str) -> str:
    """The path without the query; `/` where the URL has none."""
    return path_of(url).partition("?")[0]


def query(url: str) -> str:
    """The query without its `?`; empty without one."""
    return url.partition("?")[2]


def parameters(url: str) -> list[str]:
    """The parameters of the query in order, each as `name=value` or `name`."""
    return [one for one in query(url).split("&") if one]


def extension(url: str) -> str:
    """The text behind the last dot of the last segment, in lower case; empty without one. A name's leading dot is none."""
    name = path(url).rpartition("/")[2]
    stem, dot, last = name.rpartition(".")
    return last.lower() if dot and stem else ""


def segments(url: str) -> list[str]:
    """The segments of the path that are not empty."""
    return [one for one in path(url).split("/") if one]


def repeats(url: str) -> int:
    """How often the most frequent segment of the path occurs; numbers do not count, since dates and trees repeat them."""
    counts = Counter(one for one in segments(url) if not one.isdecimal())
    return max(counts.values(), default=0)


# -- the words

Value = Any
Test = Callable[[Value], bool]


def _globs(read: Callable[[Value], str], *, segments: bool = False) -> Callable[[tuple[str, ...]], Test]:
    """A test that some pattern fits the text that `read` takes from the fact."""

    def build(patterns: tuple[str, ...]) -> Test:
        if not patterns:
            raise ValueError("takes at least one value in parentheses")
        plain = frozenset(one for one in patterns if not {"*", "?"} & set(one))
        searches = [compile_pattern(glob(one, segments=segments)).search for one in patterns if one not in plain]
        if not searches:
            return lambda fact: read(fact) in plain

        def test(fact: Value) -> bool:
            text = read(fact)
            return text in plain or any(search(text) is not None for search in searches)

        return test

    return build


def _lowered(build: Callable[[tuple[str, ...]], Test]) -> Callable[[tuple[str, ...]], Test]:
    """The same for facts that are in lower case: arguments may be written in any."""
    return lambda values: build(tuple(value.lower() for value in values))


def _domain(constraints: tuple[str, ...]) -> Test:
    if not constraints:
        raise ValueError("takes at least one constraint, as domain(hu.bme.*)")
    rules = [DomainConstraint(one) for one in constraints]
    return lambda url: any(rule.holds(host_of(url)) for rule in rules)


def _path(patterns: tuple[str, ...]) -> Test:
    for one in patterns:
        if not one.startswith(("/", "*")):
            raise ValueError(f"a path begins with a slash: write /{one} or **/{one}")
    return _globs(path, segments=True)(patterns)


def _extension(values: tuple[str, ...]) -> Test:
    if not values:
        return lambda url: extension(url) != ""
    _check_plain(values, "name each, as extension(jpg, jpeg)")
    wanted = frozenset(value.lower().removeprefix(".") for value in values)
    return lambda url: extension(url) in wanted


def _query(values: tuple[str, ...]) -> Test:
    """`query`: there is one; `query(page)`: with this parameter; `query(page=3)`: with this value."""
    if not values:
        return lambda url: "?" in url
    names = frozenset(value for value in values if "=" not in value)
    pairs = frozenset(value for value in values if "=" in value)

    def test(url: Value) -> bool:
        return "?" in url and any(one in pairs or one.partition("=")[0] in names for one in parameters(url))

    return test


def _language(values: tuple[str, ...]) -> Test:
    """Tags as RFC 4647, 3.3.1 compares them: `en` fits `en` and `en-GB`. Without any: some language is known."""
    if not values:
        return lambda language: language != ""
    _check_plain(values, "write language(en) for en and en-GB")
    wanted = tuple(value.lower() for value in values)
    return lambda language: any(language.lower() == one or language.lower().startswith(f"{one}-") for one in wanted)


def _check_plain(values: tuple[str, ...], instead: str) -> None:
    """Refuse a `*` where it stands for nothing: such a test would never be true, without a word. Raises ValueError: names the
    value."""
    if starred := next((value for value in values if "*" in value), None):
        raise ValueError(f"{starred!r}: no pattern is taken here, and * stands for nothing; {instead}")


def _words(values: tuple[str, ...]) -> Test:
    """`text(kidney, "heart disease")`: some of them stands there as whole words, in either case."""
    import re2  # few crawls give words, and it takes 3 ms

    if not values or not all(map(str.split, values)):
        raise ValueError("takes at least one word or phrase in parentheses")
    _check_plain(values, r"write text matches '(?i)\bneedle' for words that begin so")
    # A word ends where no letter or digit follows, in whatever script; scripts without spaces have no such ends.
    apart, anywhere = (
        [r"\s+".join(map(re2.escape, value.split())) for value in values if value.isascii() is alone]
        for alone in (True, False)
    )
    patterns = compile_words(apart, r"(?:^|[^\pL\pN])", r"(?:$|[^\pL\pN])") + compile_words(anywhere)
    searches = [pattern.search for pattern in patterns]
    if len(values) > 1:
        return lambda text: any(search(text) is not None for search in searches)
    # RE2 finds that a text lacks one word four times as fast if it need not look at what stands around it.
    (lone,) = compile_words(apart + anywhere)
    return lambda text: lone.search(text) is not None and searches[0](text) is not None


def _count(values: tuple[str, ...]) -> Callable[[Value], float]:
    """`keywords(LIST) >= 3`: how many of the page's keywords fit one of the list."""
    fits = _one_of(values)
    return lambda found: sum(map(fits, found))


def _some(values: tuple[str, ...]) -> Test:
    fits = _one_of(values)
    return lambda found: any(map(fits, found))


def _one_of(values: tuple[str, ...]) -> Test:
    return _lowered(_globs(itself))(tuple(" ".join(value.split()) for value in values))


def _types(values: tuple[str, ...]) -> Test:
    """`type(Article)`: by the last part of the type's IRI, or by all of it; alone: the page describes something."""
    if not values:
        return bool
    names = tuple(value for value in values if ":" not in value)
    whole = tuple(value for value in values if ":" in value)
    tests = [build(read) for build, read in ((_globs(_name_of), names), (_globs(itself), whole)) if read]
    return lambda types: any(test(one) for one in types for test in tests)


def _name_of(iri: str) -> str:
    return iri.replace("#", "/").rpartition("/")[2]


def _has_field(values: tuple[str, ...]) -> Test:
    """`header(etag)`: the answer has a field of one of these names."""
    if not values:
        raise ValueError("takes the name of a header field, as header(etag)")
    _check_plain(values, "name each field")
    names = frozenset(value.lower() for value in values)
    return lambda headers: any(name in names for name, _ in headers)


def _field(values: tuple[str, ...]) -> Callable[[Value], str]:
    """`header(server) matches nginx`: all values of the field, as RFC 9110 (5.3) joins them; empty without one."""
    if len(values) != 1:
        raise ValueError("takes one name before `matches`, as header(server) matches nginx")
    wanted = values[0].lower()
    return lambda headers: ", ".join(value for name, value in headers if name == wanted)


def _flag(values: tuple[str, ...]) -> Test:
    if values:
        raise ValueError("takes no value; write it alone")
    return bool


def _patterns(values: tuple[str, ...]) -> Test:
    if not values:
        raise ValueError("takes at least one RE2 pattern in parentheses")
    searches = [compile_pattern(value).search for value in values]
    return lambda url: any(search(url) is not None for search in searches)


def itself(value: Value) -> Value:
    """The value: the fact of a predicate that looks at all of it."""
    return value


def _word(fact: str, doc: str, **more: Any) -> Predicate:
    return Predicate(fact=fact, doc=doc, **more)


#: The words that ship. Facts are those of :mod:`compiling`.
SHIPPED: Mapping[str, Predicate] = {
    "url": _word("url", "The whole canonical URL, by glob.", test=_globs(itself), text=itself),
    "matches": _word("url", "The whole canonical URL, by RE2.", test=_patterns),
    "scheme": _word("url", "The scheme, as `https`.", test=_lowered(_globs(scheme_of)), text=scheme_of),
    "host": _word("url", "The host name without port, by glob.", test=_lowered(_globs(host_of)), text=host_of),
    "domain": _word("url", "The host, by domain constraint: `hu.bme`, `hu.bme.+`, `hu.bme.*`.", test=_domain),
    "path": _word(
        "url",
        "The path without the query, by glob: `*` within a segment, `**` across segments.",
        test=_path,
        text=path,
    ),
    "extension": _word("url", "What follows the last dot of the path; alone: there is one.", test=_extension),
    "query": _word("url", "A parameter, as `page` or `page=3`; alone: there is a query.", test=_query, text=query),
    "length": _word("url", "Bytes of the URL.", number=len, unit="bytes"),
    "segments": _word("url", "Segments of the path.", number=lambda url: len(segments(url))),
    "parameters": _word("url", "Parameters of the query.", number=lambda url: len(parameters(url))),
    "repeats": _word(
        "url", "How often the most frequent segment of the path occurs; numbers do not count.", number=repeats
    ),
    "depth": _word("depth", "Links from the nearest seed.", number=itself),
    "relation": _word(
        "relation", "Tag and attribute of the link, as `img src`, by glob.", test=_globs(itself), text=itself
    ),
    "label": _word("label", "The label of a spider's request, by glob.", test=_globs(itself), text=itself),
    "anchor": _word("anchor", "The text of the link.", text=itself),
    "nofollow": _word("nofollow", "The link says `nofollow`.", test=_flag),
    "status": _word("status", "The status code of the answer.", number=itself),
    "outcome": _word("outcome", "How the fetch ended, as `ok`.", test=_lowered(_globs(itself)), text=itself),
    "mime": _word("mime", "The media type, by glob: `image/*`.", test=_lowered(_globs(itself)), text=itself),
    "size": _word("size", "Bytes of the body as it came.", number=itself, unit="bytes"),
    "language": _word(
        "language", "The language of the text, as `en`, where it is told; alone: it is known.", test=_language
    ),
    "title": _word("title", "The title of the document.", text=itself),
    "text": _word(
        "text",
        "A word or phrase stands in the text, in either case; `text >= 500`: characters of it.",
        test=_words,
        text=itself,
        number=len,
    ),
    "header": _word(
        "headers", "The answer has this header field; with `matches` its value.", test=_has_field, text_of=_field
    ),
    "links": _word("links", "Links of the page, before any filter.", number=itself),
    "type": _word(
        "types",
        "The page describes a thing of this type in RDFa, JSON-LD or microdata, as `Article`; alone: anything.",
        test=_types,
    ),
    "keywords": _word(
        "keywords",
        "A keyword of the page fits the list, by glob; with a comparison: how many do.",
        test=_some,
        number_of=_count,
    ),
}


@cache
def vocabulary() -> Mapping[str, Predicate]:
    """The words that ship, and those of other packages. Raises UnknownName: a package's word cannot be loaded, or has the name
    of one that is there already."""
    return words_of(offered("gossamer.predicates"))


def words_of(entries: Iterable["EntryPoint"]) -> Mapping[str, Predicate]:
    """The words that ship, and those of these entry points. Raises UnknownName: as :func:`vocabulary`."""
    found = dict(SHIPPED)
    for entry in entries:
        name = entry.name.lower()
        try:
            predicate = entry.load()
        except (ImportError, AttributeError) as error:
            raise UnknownName(f"predicate {entry.name!r} cannot be loaded: {error}") from error
        if not isinstance(predicate, Predicate):
            raise UnknownName(f"predicate {entry.name!r} is not a gossamer Predicate: {entry.value}")
        if name in found:
            raise UnknownName(f"predicate {entry.name!r} of {entry.value} has the name of one that is there already")
        found[name] = predicate
    return found

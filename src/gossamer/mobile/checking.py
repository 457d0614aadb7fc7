"""Whether a crawler makes sense: what types and bounds cannot say.

Place in the flow: a crawler is checked when a file was read and when bytes came in, before anything is fetched. The same rules
hold for a person's file and for a stranger's bytes.
"""

import re2

from gossamer.engine.errors import UnknownName
from gossamer.expressions.compiling import Expression
from gossamer.expressions.contract import Gate
from gossamer.expressions.syntax import ExpressionError
from gossamer.mobile.crawler import VERSIONS, MobileCrawler
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.url import canonical, host_of

#: Schemes of seeds: a crawler visits sites.
SCHEMES = ("http://", "https://")

# A selector of elements: tags, ids, classes and attributes, joined by `>`, and by one space at most. More spaces, `~` and
# functions as `:has()` cost the parser's library time that grows with powers of a page's depth.
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_-]*"
_VALUE = rf"(?:{_IDENTIFIER}|\"[^\"\\]*\"|'[^'\\]*')"
_MARK = rf"(?:[.#]{_IDENTIFIER}|\[{_IDENTIFIER}(?:[~|^$*]?={_VALUE})?\])"
_COMPOUND = rf"(?:(?:{_IDENTIFIER}|\*){_MARK}*|{_MARK}+)"
_STEPS = rf"{_COMPOUND}(?: *> *{_COMPOUND}){{0,7}}"
_SELECTOR = re2.compile(rf"{_STEPS}(?: +{_STEPS})?")

_GATES: tuple[Gate, ...] = ("follow", "expand", "store")


class CrawlerRefused(UsageError):
    """A crawler that cannot be run: the place in it, and what is wrong there, in one line."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.place = place
        """Names and positions, parted by dots, as `limits.depth` or `seeds[0]`; empty for the whole."""
        self.reason = reason


def check_crawler(crawler: MobileCrawler) -> None:
    """Refuse a crawler that could not do what it says.

    Raises:
        CrawlerRefused: says which place is wrong, and what to do.
    """
    program = crawler.program
    if program.version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise CrawlerRefused("version", f"{program.version} is unknown here; this build knows {known}")
    _check_seeds(program.seeds)
    _check_seeds(program.around, "around")
    if len(crawler.facts.depths) not in (0, len(program.seeds)):
        raise CrawlerRefused("facts.depths", "give one for each seed, or none")
    for place, url in enumerate(crawler.facts.known):
        try:
            canonical(url)
        except UnreadableUrl as error:
            raise CrawlerRefused(f"facts.known[{place}]", f"{error}; write it in full") from None
    if shared := sorted(set(crawler.facts.keywords) & set(crawler.facts.parameters)):
        raise CrawlerRefused(f"facts.parameters.{shared[0]}", "a keyword list has the same name; rename one of them")
    for gate in _GATES:
        compiled(crawler, gate)
    if program.traversal == "depth" and program.limits.depth is not None:
        raise CrawlerRefused(
            "limits.depth", 'needs traversal = "breadth": only that meets every URL on its shortest way'
        )
    for place, selector in enumerate(program.bring.elements):
        if _SELECTOR.fullmatch(selector.strip()) is None:
            advice = (
                "write tags, .classes, #ids and [attributes], joined by `>` and by one space at most, as `.menu li > a`"
            )
            raise CrawlerRefused(
                f"bring.elements[{place}]", f"{selector[:100]!r} is not a selector that crawlers know; {advice}"
            )
    if "items" in program.bring.parts and not program.processors:
        raise CrawlerRefused(
            "bring.parts", "`items` come from processors, and the program names none; add [[processors]]"
        )
    if "items" not in program.bring.parts and program.processors:
        raise CrawlerRefused("processors", "their items are not brought home; add `items` to bring.parts")


def compiled(crawler: MobileCrawler, gate: Gate) -> Expression | None:
    """The program's expression for a gate; None where it has none.

    Raises:
        CrawlerRefused: it cannot be read.
    """
    source: str = getattr(crawler.program, gate)
    if not source.strip():
        return None
    try:
        return Expression(source, gate, given=crawler.facts.given())
    except ExpressionError as error:
        raise CrawlerRefused(gate, f"{error.reason}, at character {error.position + 1}") from None
    except UnknownName as error:
        raise CrawlerRefused(gate, str(error)) from None


def _check_seeds(seeds: tuple[str, ...], name: str = "seeds") -> None:
    for place, seed in enumerate(seeds):
        try:
            url = canonical(seed)
        except UnreadableUrl as error:
            raise CrawlerRefused(f"{name}[{place}]", f"{error}; write it in full, as https://example.org/") from None
        if not url.startswith(SCHEMES) or not host_of(url):
            raise CrawlerRefused(
                f"{name}[{place}]", f"{url[:100]!r} is not an http or https URL; write https://example.org/"
            )

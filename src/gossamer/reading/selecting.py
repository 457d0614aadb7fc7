"""Taking texts, numbers and attributes out of a page, or out of one element of it, by CSS selectors.

Place in the flow: handlers use these ways on a :class:`~gossamer.reading.page.Page`, and on each :class:`PagePart` of one.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from gossamer.model.errors import UsageError
from gossamer.model.items import number_in

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode


class Selecting:
    """What a page and an element of it have in common. Whoever derives from it says what `_root` is."""

    @property
    def _root(self) -> Any:
        """What is searched: a tree, or a node of one."""
        raise NotImplementedError

    def css(self, selector: str) -> "list[LexborNode]":
        """Elements that match a CSS selector, in document order.

        Raises:
            UsageError: it is no selector.
            ParseSkipped: the page has no tree, since it would cost the parser too much.
        """
        from selectolax.lexbor import SelectolaxError  # whoever asks for no element has no use for it

        root = self._root
        try:
            found: list[LexborNode] = root.css(selector)
        except SelectolaxError as error:
            _refuse_selector(selector, error)
        return found

    def first(self, selector: str) -> "LexborNode | None":
        """The first element that matches; None where none does. Raises as :meth:`css`."""
        from selectolax.lexbor import SelectolaxError  # as above

        root = self._root
        try:
            found: LexborNode | None = root.css_first(selector)
        except SelectolaxError as error:
            _refuse_selector(selector, error)
        return found

    def each(self, selector: str) -> "Iterator[PagePart]":
        """The elements that match, in document order, each with the methods of a page: `for quote in page.each(".quote")`."""
        return map(PagePart, self.css(selector))

    def text(self, selector: str = "", default: str = "") -> str:
        """The text of the first element that matches, white space folded; `default` where none does."""
        node = self.first(selector)
        return default if node is None else folded(node)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that match, in document order."""
        return [folded(node) for node in self.css(selector)]

    def number(self, selector: str) -> float | None:
        """The first number in the text of the first element that matches: `£12.50` is 12.5. None where there is none."""
        node = self.first(selector)
        return None if node is None else number_in(folded(node))

    def attr(self, selector: str, name: str, default: str = "") -> str:
        """An attribute of the first element that matches; `default` where there is none."""
        node = self.first(selector)
        value = None if node is None else node.attributes.get(name)
        return default if value is None else value

    def attrs(self, selector: str, name: str) -> list[str]:
        """That attribute of all elements that match and have it."""
        found = (node.attributes.get(name) for node in self.css(selector))
        return [value for value in found if value is not None]


class PagePart(Selecting):
    """One element of a page: what it holds is taken out of it as out of a page."""

    __slots__ = ("node",)

    def __init__(self, node: "LexborNode") -> None:
        """`node`: the element, as selectolax has it."""
        self.node = node

    def __repr__(self) -> str:
        return f"<PagePart {self.node.tag}>"

    @property
    def _root(self) -> Any:
        return self.node

    def text(self, selector: str = "", default: str = "") -> str:
        """The text of the first element in it that matches, white space folded; of the element itself without a selector."""
        return super().text(selector, default) if selector else folded(self.node)

    def attribute(self, name: str, default: str = "") -> str:
        """An attribute of the element itself; `default` where it has none."""
        value = self.node.attributes.get(name)
        return default if value is None else value


def folded(node: "LexborNode") -> str:
    """The text of an element, white space folded."""
    return " ".join(node.text().split())


def _refuse_selector(selector: str, error: Exception) -> NoReturn:
    raise UsageError(f"{selector!r} is not a CSS selector: {error}") from None

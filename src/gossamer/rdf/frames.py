"""What a reader of RDFa remembers while it is within an element: the evaluation context and local values of RDFa Core (7.5)."""

from enum import StrEnum

from gossamer.rdf.initial import PREFIXES, TERMS, XHTML_TERMS
from gossamer.rdf.names import Names
from gossamer.rdf.values import Value


class HostLanguage(StrEnum):
    """The language in which RDFa stands."""

    HTML = "html"
    XHTML1 = "xhtml1"
    XHTML5 = "xhtml5"


#: What a page knows before it says anything; shared, so that what many pages say is looked up once.
INITIAL = {
    HostLanguage.HTML: Names(PREFIXES, TERMS),
    HostLanguage.XHTML1: Names(PREFIXES, XHTML_TERMS),
    HostLanguage.XHTML5: Names(PREFIXES, XHTML_TERMS),
}


class List:
    """Items of a property with `inlist`."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Value] = []


class Frame:
    """The evaluation context of what stands in one element."""

    __slots__ = ("depth", "incomplete", "language", "lists", "names", "object", "owns", "subject")

    def __init__(
        self, depth: int, names: Names, language: str, subject: str, current: str, lists: dict[str, List]
    ) -> None:
        self.depth = depth
        self.names = names
        self.language = language
        self.subject = subject
        self.object = current
        #: Lists of the object, by property.
        self.lists = lists
        #: Lists that end with the element, each with its subject; those of the subject stand before those of the object.
        self.owns: list[tuple[str, dict[str, List]]] = []
        #: Predicates that wait for what stands in the element: with a list, backwards, or forwards.
        self.incomplete: list[tuple[str, List | None, bool]] = []


class Step:
    """What the attributes of one element name: the local values of the processing sequence."""

    __slots__ = ("new", "resource", "skip", "typed")

    def __init__(self) -> None:
        self.new: str | None = None
        self.typed: str | None = None
        self.resource: str | None = None
        self.skip = False

"""The host's template: separates the content that most pages of a host share from a page's own. Suite:
`gossamer.testing.check_template`.

Parts that judge a page by its content (traps, fingerprints, text extraction, changes) leave the template out first.
"""

from collections.abc import Iterable, Set
from typing import Protocol

import msgspec

from gossamer.contracts.watching import Learnt


class Reading(msgspec.Struct, frozen=True):
    """A page, told apart."""

    own: Set[int]
    """Marks that are not of the template: all of them for the first page of a kind."""
    share: float
    """How much of the page was weighed, 0 to 1: of a host whose pages share thousands of marks, a steady sample is."""
    earlier: int
    """Pages of its kind that were read before, as far as they are remembered."""
    kinds: int
    """Kinds of pages that were known of the host; none of a host that was forgotten, or never read."""
    likeness: float
    """How like the most similar earlier remainder is to this one, 0 to 1 (Jaccard, estimated from all of it)."""

    @property
    def size(self) -> float:
        """Marks of its own, as far as can be told from what was weighed."""
        return len(self.own) / self.share


class HostTemplate(Protocol):
    """Knows the templates of hosts: a host has several, one for each kind of page.

    A *mark* is a 32-bit checksum (xxh32) of anything that pages share or do not share: a word, a shingle, the URL of a link.

    Promises:
        1. A mark that most pages of a kind have is none of a page's own, once three pages of the kind were read.
        2. A mark that no earlier page of the host had is the page's own, as far as it is weighed.
        3. Memory is bounded, whatever is read; what is forgotten is learnt anew, and meanwhile pages have more of their own.
        4. What is kept of one host is at most 16 KiB, and is given only when it has changed.
    """

    def read(self, host: str, marks: Set[int], *, learn: bool = True) -> Reading:
        """Tell a page of a host apart by its marks, and remember it unless `learn` is False."""
        ...

    def learnt(self) -> Iterable[Learnt]:
        """What is to be kept of each host that has changed since this was last asked."""
        ...

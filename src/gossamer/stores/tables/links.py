"""`links`: every link of every page, column by column in frames, since a frame of 58 links costs a tenth of 58 rows."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from gossamer.contracts.tables import RowSource, Table, column
from gossamer.model.visit import Link

#: Links in one frame: 500 of the longest URLs with anchors that are all escapes stay below what a reader takes as one line.
MAX_FRAME_LINKS = 500

#: The relation of most links: a frame in which all links have it leaves the column out.
_USUAL = "a href"


class LinksRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The links of one page. A column that is the same for all of them is left out: no anchor, no `nofollow`, `a href`."""

    source: Annotated[str, column("The page's URL.")]
    target: Annotated[list[str], column("The link, resolved and canonical.")]
    relation: Annotated[
        list[str], column("Tag and attribute, as `a href`; `redirect` for the target of one.", fill=_USUAL)
    ] = []
    anchor: Annotated[list[str], column("Text of the link, where it is kept.", fill="")] = []
    nofollow: Annotated[list[bool], column("The page does not vouch for it.", fill=False)] = []
    visit: Annotated[str, column("The visit that found it, as in `pages`.")] = ""
    source_host: Annotated[str, column("Host name of the page, without port.", host_of="source")] = ""
    target_host: Annotated[list[str], column("Host name of the link, without port.", host_of="target")] = []


def _rows(told: RowSource) -> Iterable[LinksRow]:
    """The frames of a page's links, those that the filters refused at the end."""
    visit = told.visit
    links = [*visit.links, *visit.refused]
    return [_frame(told, links[at : at + MAX_FRAME_LINKS]) for at in range(0, len(links), MAX_FRAME_LINKS)]


def _frame(told: RowSource, links: list[Link]) -> LinksRow:
    relations = [link.relation for link in links]
    anchors = [link.anchor for link in links]
    nofollow = [link.nofollow for link in links]
    return LinksRow(
        source=told.task.url,
        target=[link.url for link in links],
        relation=[] if relations.count(_USUAL) == len(relations) else relations,
        anchor=anchors if any(anchors) else [],
        nofollow=nofollow if True in nofollow else [],
        visit=told.visit.id,
    )


LINKS = Table(
    "links",
    LinksRow,
    "Every link of every page to another, each once, those that the filters refused too; kept where `tables` of the log names it.",
    rows=_rows,
    page="source",
    is_made=True,
)

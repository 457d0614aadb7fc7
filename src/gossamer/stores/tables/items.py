"""`items`: what processors took out of pages. A value that no row can hold is told instead of kept."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from gossamer.contracts.tables import RowSource, Table, column
from gossamer.stores.lines import MAX_LINE_BYTES

#: Characters of a kind that stand in the row of an item that is too large.
_MAX_KIND = 256


class ItemRow(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="item"
):  # fmt: skip
    """One item that a user's processor took out of a page."""

    kind: Annotated[str, column("The processor's name for this kind of item.")]
    url: Annotated[str, column("The page's URL.")]
    data: Annotated[object, column("The item: `data->>'$.price'` takes a field out of it.")]
    visit: Annotated[str, column("The visit that found it, as in `pages`.")] = ""


def _rows(told: RowSource) -> Iterable[ItemRow]:
    visit = told.visit.id
    return [ItemRow(kind=item.kind, url=item.url, data=item.value, visit=visit) for item in told.visit.items]


def _mended(row: ItemRow, size: int) -> ItemRow:
    """What is too large is told by its size; what no JSON can hold, and was not refused where the item was made, as that."""
    told = {"too_large": size, "most": MAX_LINE_BYTES} if size else {"unwritable": True}
    return ItemRow(kind=row.kind[:_MAX_KIND], url=row.url, data=told, visit=row.visit)


ITEMS = Table(
    "items",
    ItemRow,
    "Items that processors took out of pages.",
    rows=_rows,
    mend=_mended,
    kind="kind",
    is_made=True,
    is_logged=True,
)

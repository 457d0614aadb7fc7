"""`copies`: documents that several agents of a crawl keep. The table `pages` takes its `duplicate_of` from it.

Place in the flow: :mod:`gossamer.assembly.copies` writes the claims that the ledgers keep
(:mod:`gossamer.stores.exchange.digests`).
"""

from typing import Annotated

import msgspec

from gossamer.contracts.tables import Table, column
from gossamer.model.dates import utc_text
from gossamer.model.digest_claims import Claim


class CopyRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An agent keeps a document that another agent keeps too."""

    digest: Annotated[str, column("Digest of the document, as in `pages`.")]
    url: Annotated[str, column("The URL at which one agent met the document first.")]
    met_at: Annotated[str, column("When that agent asked for it, UTC.", type="TIMESTAMP")]


COPIES = Table(
    "copies",
    CopyRow,
    "Documents that several agents keep; `duplicate_of` in `pages` names the URL that an agent met first.",
    page="",
)


def copy_row(claim: Claim) -> CopyRow:
    """The row of a claim."""
    return CopyRow(digest=claim.digest, url=claim.url, met_at=utc_text(claim.met_at))

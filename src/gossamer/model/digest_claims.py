"""Claims: which agent met a document first, where several agents share a crawl.

Place in the flow: an agent that keeps a document which it did not know claims it, and the claim goes to the agent that has
the document's digest (:mod:`gossamer.stores.exchange.digests`). A digest belongs to an agent as a host does: it lies under
a name that no host can have.
"""

import re
from functools import cache
from hashlib import blake2b
from itertools import product

import msgspec

from gossamer.model.domains import domain_point
from gossamer.model.kept import DocumentRow
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import fault_of_url
from gossamer.model.visit import Visit

#: How a task was found that carries a claim to another agent (:attr:`gossamer.model.task.Task.relation`): no link is of this kind.
CLAIM = "claim"

#: Precedes a claim that travels as a task, in the place of the task's URL.
_SCHEME = "claim:"

#: Characters of a digest that say under which name it lies: 1,024 names, so that each agent has its part of them, and one name has
#: some thousand of ten million digests.
_NAMED_BY = 2

#: Bytes that tell the URLs of one document apart.
_MARK_BYTES = 8

#: Seconds since the epoch that a table of times has room for: about the year 5000.
_LATEST = 1e11

_DIGEST = re.compile(r"[A-Z2-7]{32}")

_encode = msgspec.msgpack.Encoder().encode


class Claim(msgspec.Struct, frozen=True, array_like=True, gc=False, order=False):
    """A document that an agent keeps, and that it did not know."""

    digest: str
    url: str
    met_at: float
    """Seconds since the epoch when the request was sent."""
    copies: int = 0
    """How many other claims of this digest are known; only the first claim of a digest counts them."""

    @property
    def host(self) -> str:
        """The name that the digest lies under. RFC 6761 gives `invalid` to nobody, so that no host of the web has it."""
        return _name(self.digest[:_NAMED_BY].lower())

    @property
    def key(self) -> bytes:
        """The key of the first claim."""
        return self.digest.encode("utf-8", "surrogatepass")

    @property
    def copy_key(self) -> bytes:
        """The key of a later claim: it lies behind the first one."""
        return self.key + blake2b(self.url.encode("utf-8", "surrogatepass"), digest_size=_MARK_BYTES).digest()


def _name(beginning: str) -> str:
    return f"digests-{beginning}.invalid"


#: The characters of digests (base32, RFC 4648) in lower case.
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz234567"


@cache
def digest_names() -> dict[int, str]:
    """The names that digests lie under, by their points on the circle of domains.

    They belong to agents by the ring, also where a table gives all other domains to agents: they are no load. A domain that shares
    a point with one of them has its agent, since what lies at one point moves as a whole.
    """
    names = (_name("".join(two)) for two in product(_CHARACTERS, repeat=_NAMED_BY))
    return {domain_point(name): name for name in names}


def packed(claim: Claim) -> bytes:
    """The claim as a value of a space."""
    return _encode(claim)


#: The claim that a value of a space holds.
unpacked = msgspec.msgpack.Decoder(Claim).decode


def claim_of(visit: Visit) -> Claim | None:
    """What an agent claims with a visit; None where it has no document, or one that the agent knows."""
    response = visit.response
    is_new = response.outcome is Outcome.OK and bool(response.body) and not visit.duplicate_of
    if not is_new or not visit.digest or visit.task.is_marked or visit.again is not None:
        return None
    return Claim(visit.digest, visit.url, response.started)


def claim_of_row(row: DocumentRow) -> Claim | None:
    """What an agent claims with a visit that it has committed; None as for :func:`claim_of`."""
    if row.outcome is not Outcome.OK or not row.bytes or row.duplicate_of or row.mark or not row.digest:
        return None
    return Claim(row.digest, row.url, row.fetched_at)


def as_task(claim: Claim) -> Task:
    """The claim as it travels to another agent."""
    return Task(_SCHEME + msgspec.json.encode(claim).decode(), claim.host, relation=CLAIM)


def claimed_by(task: Task) -> Claim | None:
    """The claim that a task carries; None where it carries none that can be kept: an agent of another version may have sent it."""
    try:
        claim = msgspec.json.decode(task.url.removeprefix(_SCHEME), type=Claim)
    except (msgspec.DecodeError, RecursionError):
        return None
    is_sound = (
        claim.host == task.host
        and _DIGEST.fullmatch(claim.digest) is not None
        and not fault_of_url(claim.url)
        and 0 <= claim.met_at <= _LATEST
        and not claim.copies
    )
    return claim if is_sound else None

"""How control messages travel: what a request and an answer are, and their form on the wire.

Place in the flow: the list of requests (:mod:`gossamer.assembly.control.messages`) is made of these; server and clients send and
read them. A message is JSON with its length before it. A request names no code, no class, no file and no environment: only
fields of the types that it declares. A field that is not known is refused. Lengths are checked before anything is allocated
(fault 113).
"""

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

if TYPE_CHECKING:
    from gossamer.assembly.control.steerable import HasGraph, Steerable

#: Bytes of a request at most: a block list of some 40,000 names.
MAX_REQUEST = 1 << 20

#: Bytes of an answer at most; the server cuts its lists long before.
MAX_ANSWER = 1 << 24

#: Bytes before each message: its length, the highest byte first.
HEADER = 4


class ControlRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    """Base of what can be asked."""

    steers: ClassVar[bool] = True
    """It changes the crawl, and a line of the steering log says so."""

    async def act(self, crawl: "Steerable") -> "Answered":
        """Do it to a crawl, in the crawl's process.

        Raises:
            GossamerError: it cannot be done, and nothing has changed.
            FlowError: likewise.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it does")

    def noted(self, crawl: "HasGraph", answered: "Answered") -> dict[str, Any]:
        """What the steering log says of it once it is done."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class Reply(msgspec.Struct, frozen=True, tag_field="is"):
    """Base of what is answered."""


class Done(Reply, frozen=True, tag="done"):
    """It was done; in words for a person."""

    text: str


class Listed(Reply, frozen=True, tag="listed"):
    """Names that were asked for."""

    names: list[str]


class Told(Reply, frozen=True, tag="told"):
    """What was asked for, as JSON that the asker knows the form of."""

    value: msgspec.Raw


class NotDone(Reply, frozen=True, tag="refused"):
    """It was not done, and nothing has changed."""

    text: str
    exit_code: int = 2


Answered = Done | Listed | Told | NotDone

_answers = msgspec.json.Decoder(Answered)


class Malformed(ValueError):
    """A message that is none of ours. The connection is dropped."""


def encode(message: ControlRequest | Reply) -> bytes:
    """A message with its length before it."""
    body = msgspec.json.encode(message)
    return len(body).to_bytes(HEADER) + body


def read_length(header: bytes, limit: int) -> int:
    """The length of the message that follows.

    Raises:
        Malformed: it is longer than `limit`, or empty.
    """
    length = int.from_bytes(header)
    if not 0 < length <= limit:
        raise Malformed(f"a message of {length} bytes; at most {limit} are taken")
    return length


def tag_of(request: type[ControlRequest]) -> str:
    """What a kind of request is called on the wire."""
    return str(request.__struct_config__.tag)


def read_answer(body: bytes) -> Answered:
    """An answer from its bytes.

    Raises:
        Malformed: it is none; says what is wrong.
    """
    answer: Answered = decoded(_answers, body)
    return answer


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """A message from its bytes. Raises :class:`Malformed` where it is none."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a message of this protocol: {error}") from None


def told(value: msgspec.Struct) -> Told:
    """A value as an answer."""
    return Told(msgspec.Raw(msgspec.json.encode(value)))

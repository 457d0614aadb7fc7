"""What an answer's body comes to, and what of the answer was read although its standard does not allow it.

Place in the flow: :mod:`~gossamer.stages.fetch.http` makes the response of it, once the transfer has ended.
"""

from gossamer.model import mime
from gossamer.model.body import Body, beginning
from gossamer.model.notes import Note
from gossamer.model.outcome import Outcome
from gossamer.reading import coding
from gossamer.reading.keeping import Keeping
from gossamer.stages.fetch.head import Head
from gossamer.stages.fetch.transfer import Cut, Transfer
from gossamer.stages.fetch.verdicts import beside_status, decode_failed


def body_of(
    transfer: Transfer, head: Head, verdict: Cut, keeping: Keeping
) -> tuple[Body, Body | None, tuple[Note, ...], Cut]:
    """The body as it came, without its content coding where it has one, what is untidy about that, and the verdict.

    An error page stays one, whatever is wrong with its coding: the fault is told beside the verdict.
    """
    body: Body
    if transfer.store is not None:
        body, undone = transfer.store.take(whole=not verdict.cut)
    else:
        chunks, undone = transfer.chunks, None
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    if not head.content_coding or not body or verdict.outcome is Outcome.PROTOCOL_FAILED:
        return body, None, (), verdict
    applied = coding.codings(head.content_coding)
    if not applied:
        return body, None, (), verdict
    if refused := coding.refusal(applied):
        return body, None, (), decode_failed(verdict, refused, head.status)
    if undone is None:
        undone = coding.decode(beginning(body), applied, keeping, whole=not verdict.cut)
    elif undone.error:
        undone = coding.to_the_fault(body, applied, keeping, undone)
    if not undone.is_readable:
        return body, None, (), decode_failed(verdict, undone.error, head.status)
    if undone.error and verdict.outcome is Outcome.OK:
        verdict = Cut(Outcome.TRUNCATED, undone.error, "unspecified")
    elif undone.cut and not verdict.cut:
        verdict = beside_status(Cut(Outcome.TRUNCATED, undone.cut, "length"), head.status)
    if undone.error:
        return body, undone.data, (Note.BROKEN_CODING,), verdict
    return body, undone.data, (Note.CODING_END,) if undone.is_odd else (), verdict


def notes_of(head: Head, of_body: tuple[Note, ...]) -> tuple[Note, ...]:
    """What of the answer was read although its standard does not allow it.

    Args:
        head: of the answer.
        of_body: what :func:`body_of` says of its body.
    """
    notes = head.notes
    if mime.is_odd(head.fields):
        notes = (*notes, Note.CONTENT_TYPE)
    if head.content_coding and coding.has_unknown(head.content_coding):
        notes = (*notes, Note.UNKNOWN_CODING)
    return (*notes, *of_body) if of_body else notes

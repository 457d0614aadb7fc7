"""What a visit says of a page that was visited before: the words of the columns `change` and `judged_by`."""

from enum import StrEnum

import msgspec


class PageChange(StrEnum):
    """What a visit says of a page that is known."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REDIRECTED = "redirected"
    """It leads elsewhere: a redirect appeared, or has another target."""
    MISSING = "missing"
    """The server has nothing there. That may pass: nothing is taken away yet."""
    GONE = "gone"
    """It has nothing there for the second time in a row."""
    BACK = "back"
    """The page was gone, and is there again."""


class JudgedBy(StrEnum):
    """What decided that."""

    SERVER = "server"
    """It answered `304`."""
    DIGEST = "digest"
    """The digest of the bytes."""
    TEXT = "text"
    """The fingerprint of the text."""
    STATUS = "status"
    """The kind of answer: document, redirect, or nothing there."""


class Comparison(msgspec.Struct, frozen=True):
    """What a visit says of a page, compared with the visit before."""

    change: PageChange
    judged_by: JudgedBy
    bits: int | None = None
    """In how many bits the fingerprints of the texts differ; None where one of them is missing."""

"""What an answer has that its standard does not allow, and that was read all the same: a closed list of words.

Place in the flow: a protocol module notes them in the response; log, tables, archive and `why` tell them, and the module
counts them as `note:WORD`. None of them changes what a document says, only how sure one can be of it.
"""

from enum import StrEnum


class Note(StrEnum):
    """One oddity of an answer; :data:`MEANINGS` says which."""

    SPACED_NAME = "space_before_colon"
    NO_FIELD = "no_field"
    CONTROL_CHARACTER = "control_character"
    CHUNKED_TWICE = "chunked_twice"
    LENGTH_TWICE = "length_twice"
    CONTENT_TYPE = "content_type"
    UNKNOWN_CODING = "unknown_coding"
    BROKEN_CODING = "broken_coding"
    CODING_END = "coding_end"


MEANINGS = {
    Note.SPACED_NAME: "White space stands between the name of a field and its colon; it does not decide where the answer ends.",
    Note.NO_FIELD: "A line of the head has no colon, or a name with characters that no name may have; it was ignored.",
    Note.CONTROL_CHARACTER: "A field holds a control character, neither NUL nor a bare carriage return.",
    Note.CHUNKED_TWICE: "`Transfer-Encoding: chunked` is given more than once, for a body that is chunked once.",
    Note.LENGTH_TWICE: "`Content-Length` is given more than once, with the same value.",
    Note.CONTENT_TYPE: "`Content-Type` is given more than once, or is no media type.",
    Note.UNKNOWN_CODING: "The answer names an unknown content coding; the body was read as if it had no coding.",
    Note.BROKEN_CODING: "The content coding is broken; the bytes before the fault were read.",
    Note.CODING_END: "Bytes follow the end of the content coding, or its check sum is missing. The document is whole.",
}

"""What a user's code raised, in words that lead to its line: who, where, what, and the whole traceback.

Place in the flow: whoever runs a user's code makes one of these of each exception; it travels in the visit, and the table `errors`
keeps it.
"""

import os.path
import traceback

from gossamer.model.visit import Raised

# Processes that read documents import this, and with pathlib they would look for a module of another system, `nt`: a session's
# current folder might have a file of that name. So paths are texts here.

#: Where our own modules lie: frames in them are not what the user wrote.
_OWN = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120

#: Where Python's own modules lie, in whichever environment.
_PYTHON = os.path.dirname(traceback.__file__)  # noqa: PTH120

#: Characters of a traceback that are kept, the innermost; of an error's text, and of who raised it.
MAX_TRACEBACK, MAX_ERROR, MAX_WHO = 8_000, 500, 200


def raised(who: str, error: BaseException, place: str = "") -> Raised:
    """What is kept of an error.

    Args:
        who: the handler or processor, as a person knows it.
        error: what it raised.
        place: file and line, where the traceback does not lead into the user's code.
    """
    text = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Raised(who[:MAX_WHO], _place(error) or place, told[:MAX_ERROR], text)


def _place(error: BaseException) -> str:
    """File and line of the innermost frame that is not ours; empty where there is none."""
    found = ""
    step = error.__traceback__
    while step is not None:
        found = place_of(step.tb_frame.f_code.co_filename, step.tb_lineno) or found
        step = step.tb_next
    return found


def place_of(file: str, line: int) -> str:
    """A line of the user's own code, as `spider.py:12`; empty for a line of ours, of Python's or of a package."""
    is_own = not file.startswith(("<", _OWN, _PYTHON)) and "site-packages" not in file
    return f"{shown_file(file)}:{line}" if is_own else ""


def shown_file(file: str) -> str:
    """A file as a person would name it: from where they stand, where it lies below."""
    try:
        current = os.getcwd()  # noqa: PTH109
    except OSError:
        return file
    real = os.path.realpath(file)
    return os.path.relpath(real, current) if real.startswith(current + os.sep) else file

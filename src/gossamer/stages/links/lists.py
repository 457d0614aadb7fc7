"""The list of parameters that ships, or one of the user's own: the edge where the links stage touches files."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from gossamer.flow.errors import SettingError
from gossamer.flow.quantities import written
from gossamer.model.normal import Parameter, read_parameters

#: Bytes of the longest list.
MAX_BYTES = 1 << 20


@lru_cache(maxsize=1)
def shipped_parameters() -> Sequence[Parameter]:
    """The list that ships, `data/parameters.txt`."""
    text = Path(__file__).with_name("data").joinpath("parameters.txt").read_text(encoding="utf-8")
    return tuple(read_parameters(text.splitlines()))


def parameters_of(file: str) -> Sequence[Parameter]:
    """The list of a file, or the shipped one where the name is empty.

    Raises:
        SettingError: the file cannot be read, or is no such list.
    """
    if not file:
        return shipped_parameters()
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        return tuple(read_parameters(written(data).splitlines()))
    except OSError as error:
        raise SettingError(f"list of parameters {file}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise SettingError(f"list of parameters {file}: {error}") from None

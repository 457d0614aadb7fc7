"""Values for some hosts: by name, or for all hosts below one. Pure.

Read by the units that have settings for single hosts (`[hosts."*.example.org"]` of a configuration).
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.url import canonical, host_of

V = TypeVar("V")


class HostTable(Generic[V]):
    """Host, or `*.` and a host for all below it -> value. The name of a host wins, then the longest pattern."""

    __slots__ = ("_below", "_exact")

    def __init__(self, values: Mapping[str, V] | None = None) -> None:
        """Read the names.

        Raises:
            UsageError: one is neither; says how it is written.
        """
        self._exact: dict[str, V] = {}
        self._below: dict[str, V] = {}
        for text, value in (values or {}).items():
            table, name = (self._below, text[2:]) if text.startswith("*.") else (self._exact, text)
            table[given_host(name, text)] = value

    def __repr__(self) -> str:
        return f"<HostTable of {len(self)}>"

    def __len__(self) -> int:
        return len(self._exact) + len(self._below)

    def get(self, host: str) -> V | None:
        """The value for a host, in its canonical form; None where there is none."""
        if host in self._exact:
            return self._exact[host]
        rest = host.partition(".")[2] if self._below else ""
        while rest:
            if rest in self._below:
                return self._below[rest]
            rest = rest.partition(".")[2]
        return None


def given_host(name: str, text: str = "") -> str:
    """The canonical form of a host's name that a person wrote, as `text` where there is more to it.

    Raises:
        UsageError: it is none.
    """
    try:
        url = canonical(f"http://{name}/")
    except UnreadableUrl:
        url = ""
    if (
        not url
        or "*" in name
        or any(one in name.rpartition("]")[2] for one in "/@?#:")
        or url != f"http://{host_of(url)}/"
    ):
        raise UsageError(f"{text or name!r} is not a host; write example.org, or *.example.org for all hosts below it")
    return host_of(url)

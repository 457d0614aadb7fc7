"""Domain constraints (Hunyadi 2007, section 5.3.2): a host name written backwards, as `--only`, `--never` and `domain()` take it.

It is written from the top-level domain on, and compared label by label without regard to case:

========== ==========================================
`hu.bme`   the host `bme.hu` alone
`hu.bme.+` everything below `bme.hu`, not itself
`hu.bme.*` `bme.hu` and everything below
========== ==========================================
"""

from gossamer.model.errors import UnreadableUrl
from gossamer.model.url import canonical, host_of

#: What belongs to a URL and not to a host name, though the parser might make one of it.
_UNFIT = frozenset("/?#@\\%:[] \t\r\n")


class DomainConstraint:
    """One constraint. A label in another script is compared in its ASCII form, as host names are.

    Raises:
        ValueError: it is no host name in reversed notation; says how one is written.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        labels = self.text.lower().rstrip(".").split(".")
        self._below = labels[-1] in ("+", "*")
        self._itself = labels[-1] != "+"
        if self._below:
            labels.pop()
        self._name = _host(labels, self.text)
        self._ending = f".{self._name}" if self._name else ""

    def __repr__(self) -> str:
        return f"<DomainConstraint {self.text}>"

    def holds(self, host: str) -> bool:
        """Whether a canonical host name matches."""
        host = host.rstrip(".")
        if host == self._name:
            return self._itself
        if not self._below or not host:
            return False
        # Without a name (`*`, `+`) the constraint is the root, which everything is below.
        return not self._name or (host.endswith(self._ending) and not host[-1].isdigit() and ":" not in host)


def _host(labels: list[str], text: str) -> str:
    """The host name that the reversed labels stand for, in its canonical form; empty for the root."""
    if not labels:
        return ""
    advice = "write the host backwards, as hu.bme, hu.bme.+ or hu.bme.*"
    if "" in labels or {"+", "*"} & set("".join(labels)) or _UNFIT & set(text):
        raise ValueError(f"{text!r} is not a domain constraint; {advice}")
    try:
        return host_of(canonical(f"http://{'.'.join(reversed(labels))}/"))
    except UnreadableUrl:
        raise ValueError(f"{text!r} names no host; {advice}") from None

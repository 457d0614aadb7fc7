"""A designation says which agent a host belongs to. Suite: `gossamer.testing.check_designation`.

Place in the flow: a group of the ledger asks for each new URL whether it stays here; the exchange asks where a URL goes that does
not. Every agent holds a designation of its own.
"""

from typing import Protocol


class Designation(Protocol):
    """Names the agent of each host, using only the members and the rule of assignable domains.

    Promises:
        1. A host belongs to one member, and all hosts of an assignable domain belong to the same one.
        2. Equal members give equal answers, in every process and in any order of the list, without asking another
           process.
        3. When a member joins, domains move only to it. When a member leaves, only its domains move.
        4. The share of a member follows its capacity.
    """

    def owner(self, host: str) -> str:
        """Return the name of the agent to which a canonical host name is assigned."""
        ...

"""When an agent that died is started again, and when no more. Pure: the supervisor asks after each death.

An agent that is killed now and then comes back at once. One that dies whenever it starts would never get better, so each death
before it has committed anything makes the next start later, and some of them in a row are the end.
"""

#: Seconds before the second start in a row that came to nothing; each further one waits twice as long, up to the longest.
FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0

#: Starts in a row that came to nothing, after which an agent is given up: some ten seconds of trying.
MOST_VAIN = 8


class Restarts:
    """The deaths of one agent."""

    def __init__(self) -> None:
        self.count = 0
        """Deaths in all."""
        self._vain = 0

    def __repr__(self) -> str:
        return f"<Restarts {self.count}, {self._vain} of them in vain>"

    def died(self, *, has_worked: bool) -> float | None:
        """Seconds until the next start; None where it is given up.

        Args:
            has_worked: it had committed something since it was started.
        """
        self.count += 1
        self._vain = 0 if has_worked else self._vain + 1
        if self._vain >= MOST_VAIN:
            return None
        return min(FIRST_WAIT * 2 ** (self._vain - 2), LONGEST_WAIT) if self._vain > 1 else 0.0

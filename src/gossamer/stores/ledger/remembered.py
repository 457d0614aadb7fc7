"""A bounded memory of what was used lately, in two generations: cheaper for each use than an exact order of uses."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """At most `capacity` entries: the half that was used last stays, what was not used since is forgotten together."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __repr__(self) -> str:
        return f"<Remembered {len(self)} of {2 * self._half}>"

    def __contains__(self, key: K) -> bool:
        return key in self._young or key in self._old

    def get(self, key: K) -> V | None:
        """The value of a key, which is now among those used last; None where it is not remembered."""
        value = self._young.get(key)
        if value is None and key in self._old:
            value = self._old[key]
            self.set(key, value)
        return value

    def set(self, key: K, value: V) -> None:
        """Remember a value."""
        self._old.pop(key, None)
        self._young[key] = value
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}

    def forget(self, key: K) -> None:
        """Remember a key no more."""
        self._young.pop(key, None)
        self._old.pop(key, None)

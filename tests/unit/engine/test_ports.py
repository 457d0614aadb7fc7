"""What a unit declares on its class is read from its annotations."""

from typing import Any, Protocol

import pytest

from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, Uses, UsesMany, declared
from gossamer.engine.errors import WiringError
from gossamer.engine.unit import Provider


class Reads(Protocol):
    """An interface."""

    def read(self) -> str: ...


class Base(Filter):
    """Declares one of each."""

    inbox: In[int]
    outbox: Out[list[str]]
    one: Uses[Reads]
    many: UsesMany[Reads]
    plain: int = 0


class Derived(Base):
    """Declares one more."""

    other: Out[int]


class Behind(Provider):
    """A provider declares what it wraps."""

    behind: Uses[Reads]


class Missing(Filter):
    """Speaks of something that is not there."""

    inbox: "In[NotHere]"  # type: ignore[name-defined]  # noqa: F821


def test_ports_and_roles_are_told_with_their_types() -> None:
    found = declared(Base)
    assert found.inputs == {"inbox": int}
    assert found.outputs == {"outbox": list[str]}
    assert found.uses == {"one": Reads}
    assert found.uses_many == {"many": Reads}


def test_what_a_base_class_declares_is_inherited() -> None:
    found = declared(Derived)
    assert set(found.outputs) == {"outbox", "other"}
    assert set(found.inputs) == {"inbox"}


def test_providers_declare_roles_too() -> None:
    assert declared(Behind).uses == {"behind": Reads}


def test_what_is_no_port_is_left_alone() -> None:
    found: Any = declared(Base)
    assert "plain" not in {**found.inputs, **found.outputs, **found.uses, **found.uses_many}


def test_an_annotation_that_cannot_be_read_names_the_class() -> None:
    with pytest.raises(WiringError, match="class Missing: name 'NotHere' is not defined in its annotations"):
        declared(Missing)

"""A wiring that the options of a crawl fill in, one after the other.

Place in the flow: :mod:`~gossamer.assembly.compiling` takes options and a wiring, and each rule there changes this.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gossamer.assembly.options import CrawlOptions
from gossamer.flow import wiring as wirings
from gossamer.flow.errors import WiringError
from gossamer.flow.wiring import Wiring


class Builder:
    """A wiring that options fill in, one after the other."""

    def __init__(self, wiring: Wiring, seeds: Sequence[str], options: CrawlOptions) -> None:
        self.wiring = wiring
        self.seeds = seeds
        self.options = options

    def __repr__(self) -> str:
        return f"<Builder of {self.wiring.source}>"

    def has(self, unit: str) -> bool:
        """Whether the wiring has this component or provider."""
        return unit in self.wiring.components or unit in self.wiring.providers

    def set(self, option: str, unit: str, values: Mapping[str, Any]) -> None:
        """Change settings of a unit.

        Raises:
            WiringError: the wiring has no such unit; names the option.
        """
        try:
            self.wiring = wirings.with_settings(self.wiring, unit, dict(values))
        except WiringError as error:
            raise WiringError(f"--{option.replace('_', '-')} sets unit {unit!r}, but {error}") from None

    def set_where_present(self, unit: str, values: Mapping[str, Any]) -> None:
        """Change settings of a unit that a wiring may do without."""
        if self.has(unit):
            self.wiring = wirings.with_settings(self.wiring, unit, dict(values))

    def put(self, option: str, unit: str, use: str) -> None:
        """Put another provider, with its own defaults, into the place of one.

        Raises:
            WiringError: the wiring has no such provider; names the option.
        """
        if unit not in self.wiring.providers:
            raise WiringError(f"--{option.replace('_', '-')} replaces unit {unit!r}, but {self.wiring.source} has none")
        providers = {**self.wiring.providers, unit: wirings.ProviderPlan(use=use)}
        self.wiring = msgspec.structs.replace(self.wiring, providers=providers)

"""What the protocol modules of a wiring mean for the other stages: whoever adds a module changes nothing else (row M1).

Place in the flow: compiling asks here. Which schemes are served is said once, by the roles of the fetch stage; from that
follow the links that are kept though they name no host, and the names that are looked up by nobody.
"""

from collections.abc import Mapping

from gossamer.flow.errors import WiringError
from gossamer.flow.wiring import Wiring, with_settings
from gossamer.model.url import WITH_AUTHORITY


def served(wiring: Wiring) -> dict[str, str]:
    """Scheme -> the provider that fetches its URLs.

    Raises:
        WiringError: a scheme has several: nobody could tell which of them a URL is for.
    """
    found: dict[str, str] = {}
    for component, plan in wiring.components.items():
        protocols = plan.providers.get("protocols", {})
        for scheme, bound in protocols.items() if isinstance(protocols, Mapping) else ():
            names = [bound] if isinstance(bound, str) else list(bound)
            if len(names) > 1:
                told = f"has {len(names)} modules ({', '.join(names)}); name one"
                raise WiringError(f"component {component!r}: scheme {scheme!r} {told}")
            found[scheme.lower()] = next(iter(names), "")
    return found


def hostless(wiring: Wiring | None) -> frozenset[str]:
    """Schemes whose URLs need not name a host, as `echo:x`: their module judges what it is given.

    `wiring`: None for the shipped ones, which serve no such scheme.
    """
    return frozenset() if wiring is None else frozenset(served(wiring)) - WITH_AUTHORITY


def unresolved(wiring: Wiring) -> frozenset[str]:
    """Schemes whose names are those of no machine: a module without a resolver connects to none."""
    return frozenset(
        scheme
        for scheme, name in served(wiring).items()
        if scheme not in WITH_AUTHORITY
        and name in wiring.providers
        and "resolver" not in wiring.providers[name].providers
    )


def with_protocols(wiring: Wiring) -> Wiring:
    """A copy whose stages know the schemes that only this wiring serves, beside those that a person has set."""
    known = {"links": {"hostless": hostless(wiring)}, "frontier": {"unresolved": unresolved(wiring)}}
    for name, plan in wiring.components.items():
        for setting, schemes in known.get(plan.use, {}).items():
            if schemes:
                wiring = with_settings(wiring, name, {setting: sorted({*schemes, *plan.settings.get(setting, ())})})
    return wiring

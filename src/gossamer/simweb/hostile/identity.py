"""Chapter G, TLS and identity: certificates that do not hold, handshakes without an end, and who asks for credentials.

Place in the flow: a part of `table`. Each way in which TLS goes wrong has a port of its own; :mod:`certificates` makes
what is shown there, `server` plays the handshakes that no TLS library would.
"""

from __future__ import annotations

from typing import Final

from gossamer.model.outcome import Outcome
from gossamer.simweb.hostile.case import PAGE, HostileAct, HostileCase, Script, Step, answer, redirect

#: Ways in which a server stalls: the crawler's deadline for the handshake has to end them.
STALLS: Final = frozenset({"stalled", "drip"})

#: TLS that does not go wrong, for what comes after it.
SOUND: Final = "sound"


_WELL: Final = answer(PAGE)


def _nothing(target: str) -> tuple[Step, ...]:
    return (HostileAct.STAY,)


def _met(number: str, name: str, does: str, tls: str, script: Script, outcome: Outcome, then: str) -> HostileCase:
    """A case whose handshake succeeds."""
    return HostileCase(number=number, name=name, does=does, outcome=outcome, script=script, tls=tls, then=then)


_REFUSED: Final = tuple(
    HostileCase(
        number=number,
        name=name,
        does=does,
        outcome=Outcome.TLS_FAILED,
        script=_nothing,
        tls=tls,
        stalls=tls in STALLS,
        then="no request is sent",
    )
    for number, name, does, tls in (
        ("G98a", "unknown authority", "A certificate by an authority that nobody knows.", "unknown"),
        ("G98b", "expired", "A certificate that has expired.", "expired"),
        ("G98c", "wrong name", "A certificate for another name.", "name"),
        ("G98d", "self-signed", "A certificate that vouches for itself.", "self"),
        ("G98e", "weak key", "A certificate of a known authority with an RSA key of 1,024 bits.", "weak"),
        ("G98f", "chain of a megabyte", "A sound certificate, followed by 1 MiB of others.", "megabyte"),
        ("G99a", "stalled handshake", "Accepts the connection and never begins TLS.", "stalled"),
        ("G99b", "no TLS", "Speaks plain HTTP on the port for HTTPS.", "plain"),
        ("G99c", "TLS 1.0", "Knows TLS 1.0 and nothing later.", "old"),
        ("G99d", "dripping handshake", "A byte of its handshake each second.", "drip"),
        ("G99e", "endless handshake", "A handshake message of 16 MiB.", "endless"),
    )
)

CASES: Final = (
    *_REFUSED,
    _met(
        "G98g",
        "chain of a hundred",
        "A hundred authorities, each vouching for the next, from a known one.",
        "hundred",
        _WELL,
        Outcome.OK,
        "it holds: OpenSSL follows a hundred authorities at most, and reads 100 KB of certificates",
    ),
    _met(
        "G99f",
        "ten thousand tickets",
        "A sound handshake and 10,000 session tickets after it.",
        "tickets",
        _WELL,
        Outcome.OK,
        "read past, one at most kept",
    ),
    _met(
        "G100",
        "downgrade",
        "HTTPS that redirects to plain HTTP at the same host.",
        SOUND,
        redirect(b"http://hostile.sim/G100/plain"),
        Outcome.REDIRECT,
        "credentials and cookies of the secure site stay there",
    ),
    HostileCase(
        number="G103",
        name="asks for credentials",
        does="A server that is no proxy and asks for a proxy's credentials (407), whatever it is told.",
        outcome=Outcome.CLIENT_ERROR,
        script=answer(
            b"no", b"Proxy-Authenticate: Basic realm=x\r\n", b"HTTP/1.1 407 Proxy Authentication Required\r\n"
        ),
        then="asked once; credentials go to the proxy that they were given for alone",
    ),
)

"""The handshake: both sides prove that they know the secret, and say what they have to do with each other.

::

    acceptor   CHALLENGE(version, nonce)
    dialer     HELLO(version, about, nonce, proof)
    acceptor   WELCOME(about, proof)        or REFUSED(reason)

A proof is HMAC-SHA256 under the shared secret, over the role of the prover, both nonces and everything both sides said.
So a proof fits one connection and one direction: neither a recorded nor a reflected one is worth anything. It proves
who is there; it does not encrypt. Where a connection is sealed (:mod:`.addresses`), a proof is also over the certificate of the
acceptor, so that nothing between the two can take part. Otherwise, where machines do not trust the network, use a tunnel.

Where no secret is set (`unix:` only, where the file's permissions decide) proofs are empty.
"""

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from gossamer.engine.errors import BrokenFrame, RemoteRefused, WiringError, refusing
from gossamer.engine.remote.frames import (
    NONCE_BYTES,
    VERSION,
    About,
    Challenge,
    FrameKind,
    FramePipe,
    Hello,
    LinkRefused,
    Welcome,
    decode,
    encode,
    refusal,
)

#: Where the secret comes from when no file is named.
SECRET_VARIABLE = "GOSSAMER_SECRET"  # the name of it, not the thing

#: A secret that can be guessed protects nothing; this is what `openssl rand -hex 16` halves to.
_SECRET_BYTES = 16

#: No secret file is longer; a wrong path to something huge is told from it.
_SECRET_FILE_BYTES = 4096


class NotHere(RemoteRefused):
    """Internal: no connector of that name listens there. A process that starts may open it next."""


class Party(Protocol):
    """One side of a connector in this process: the sender or the receiver."""

    @property
    def frame_limit(self) -> int:
        """Longest frame that a proved peer may send, in bytes."""

    @property
    def done(self) -> bool:
        """There is nothing left to connect for."""

    def about(self) -> About:
        """Its words about itself."""

    def objection(self, peer: About) -> str:
        """Why a proved peer is refused; empty if it is not."""

    def fail(self, reason: str) -> None:
        """The other side refused us for good."""

    async def serve(self, pipe: FramePipe, peer: About) -> None:
        """Use a connection until it is gone. The handshake is done."""


def read_secret(secret_file: str, environment: Mapping[str, str]) -> bytes:
    """The shared secret, or nothing where none is set. Raises WiringError: the file cannot be read, others can read it, or
    the secret is too short to be one."""
    if not secret_file:
        return _judged(environment.get(SECRET_VARIABLE, "").strip().encode(), f"the variable {SECRET_VARIABLE}")
    with refusing(WiringError, f"secret_file {secret_file!r} cannot be read"):
        mode = Path(secret_file).stat().st_mode
        with Path(secret_file).open("rb") as file:
            secret = file.read(_SECRET_FILE_BYTES).strip()
    if stat.S_IMODE(mode) & 0o077 and os.name == "posix":
        raise WiringError(f"secret_file {secret_file!r} is open to others; run: chmod 600 {secret_file}")
    if not secret:
        raise WiringError(f"secret_file {secret_file!r} is empty")
    return _judged(secret, f"secret_file {secret_file!r}")


def _judged(secret: bytes, source: str) -> bytes:
    if secret and len(secret) < _SECRET_BYTES:
        raise WiringError(
            f"the secret of {source} is shorter than {_SECRET_BYTES} characters; make one with: openssl rand -hex 32"
        )
    return secret


def mismatch(ours: About, peer: About) -> str:
    """Why two sides do not belong together; empty if they do."""
    if peer.connector != ours.connector:
        return f"this is connector {ours.connector!r}, not {peer.connector!r}"
    if peer.item_type != ours.item_type:
        return f"connector {ours.connector!r} carries {ours.item_type} here and {peer.item_type} there"
    if peer.sending == ours.sending:
        both = "send" if ours.sending else "receive"
        return f"both sides of connector {ours.connector!r} want to {both}"
    return ""


def _proof(secret: bytes, channel: bytes, role: bytes, challenge: bytes, hello: bytes, *said: About) -> bytes:
    if not secret:
        return b""
    message = b"gossamer/%d/%s\0" % (VERSION, role) + channel + challenge + hello + encode(said)
    return hmac.new(secret, message, hashlib.sha256).digest()


async def accept(pipe: FramePipe, secret: bytes, parties: Mapping[str, Party]) -> tuple[Party, About]:
    """The acceptor's half: which party the peer wants, and what it said of itself.

    Raises:
        RemoteRefused: the peer was refused, and told why.
        BrokenFrame: it does not speak our language.
    """
    challenge = secrets.token_bytes(NONCE_BYTES)
    pipe.put(FrameKind.CHALLENGE, encode(Challenge(VERSION, challenge)))
    hello = decode(await _expect(pipe, FrameKind.HELLO), Hello)
    try:  # a peer that has not proved itself learns nothing of what is here
        if hello.version != VERSION:
            raise RemoteRefused(_other_version(hello.version))
        expected = _proof(secret, pipe.channel, b"dialer", challenge, hello.nonce, hello.about)
        if not hmac.compare_digest(expected, hello.proof):
            raise RemoteRefused("the secrets of the two sides are not the same")
        party = parties.get(hello.about.connector)
        if party is None:
            known = ", ".join(sorted(parties)) or "none"
            raise NotHere(f"no connector {hello.about.connector!r} listens at this address; known: {known}")
        if reason := mismatch(party.about(), hello.about) or party.objection(hello.about):
            raise RemoteRefused(reason)
    except RemoteRefused as error:
        pipe.put(FrameKind.REFUSED, refusal(str(error), again=isinstance(error, NotHere)))
        raise
    ours = party.about()
    proof = _proof(secret, pipe.channel, b"acceptor", challenge, hello.nonce, hello.about, ours)
    pipe.put(FrameKind.WELCOME, encode(Welcome(ours, proof)))
    return party, hello.about


def _other_version(theirs: int) -> str:
    return f"version {theirs} is spoken there, {VERSION} here: run the same release on both sides"


async def introduce(pipe: FramePipe, secret: bytes, party: Party) -> About:
    """The dialer's half: what the acceptor said of itself.

    Raises:
        RemoteRefused: it refused us, or is not the one that we look for.
        BrokenFrame: it does not speak our language.
    """
    challenge = decode(await _expect(pipe, FrameKind.CHALLENGE), Challenge)
    if challenge.version != VERSION:
        raise RemoteRefused(_other_version(challenge.version))
    ours = party.about()
    nonce = secrets.token_bytes(NONCE_BYTES)
    proof = _proof(secret, pipe.channel, b"dialer", challenge.nonce, nonce, ours)
    pipe.put(FrameKind.HELLO, encode(Hello(VERSION, ours, nonce, proof)))
    welcome = decode(await _expect(pipe, FrameKind.WELCOME), Welcome)
    expected = _proof(secret, pipe.channel, b"acceptor", challenge.nonce, nonce, ours, welcome.about)
    if not hmac.compare_digest(expected, welcome.proof):
        raise RemoteRefused("the other side did not prove that it knows the secret")
    reason = mismatch(ours, welcome.about) or party.objection(welcome.about)
    if reason:
        raise RemoteRefused(reason)
    return welcome.about


async def _expect(pipe: FramePipe, kind: FrameKind) -> bytes:
    came, payload = await pipe.read()
    if came is FrameKind.REFUSED and kind is FrameKind.WELCOME:
        refused = decode(payload, LinkRefused)
        raise NotHere(refused.reason) if refused.again else RemoteRefused(refused.reason)
    if came is not kind:
        raise BrokenFrame(f"a {kind.name} frame was due, a {came.name} frame came")
    return payload

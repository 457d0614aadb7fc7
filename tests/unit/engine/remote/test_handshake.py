"""Who is let in, and who is told why not."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.engine.errors import BrokenFrame, RemoteRefused, WiringError
from gossamer.engine.remote import handshake
from gossamer.engine.remote.frames import VERSION, About, Challenge, FrameKind, FramePipe, Hello, decode, encode

Run = Callable[[Any], Any]

SECRET = b"a secret of sufficient length"
SENDER = About("urls", "str", True, "a", "stream-1", 1)
RECEIVER = About("urls", "str", False, "b", "", 0)


class FakeParty:
    """A side that only says who it is."""

    frame_limit = 4096
    done = False

    def __init__(self, about: About, objection: str = "") -> None:
        self._about = about
        self._objection = objection

    def about(self) -> About:
        return self._about

    def objection(self, peer: About) -> str:
        return self._objection

    def fail(self, reason: str) -> None:
        raise AssertionError(reason)

    async def serve(self, pipe: FramePipe, peer: About) -> None:
        raise AssertionError("not asked for")


async def shake(
    pipes: tuple[FramePipe, FramePipe],
    dialer: FakeParty,
    acceptor: FakeParty,
    dialer_secret: bytes = SECRET,
    acceptor_secret: bytes = SECRET,
) -> tuple[Any, Any]:
    parties = {acceptor.about().connector: acceptor}
    return await asyncio.gather(
        handshake.introduce(pipes[0], dialer_secret, dialer),
        handshake.accept(pipes[1], acceptor_secret, parties),
        return_exceptions=True,
    )


@pytest.mark.parametrize("secret", [SECRET, b""])
def test_two_sides_of_one_connector_learn_who_the_other_is(secret: bytes, run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        receiver = FakeParty(RECEIVER)
        met, (party, peer) = await shake(joined_pipes(), FakeParty(SENDER), receiver, secret, secret)
        assert met == RECEIVER
        assert party is receiver
        assert peer == SENDER

    run(test())


@pytest.mark.parametrize(
    ("dialer", "acceptor", "reason"),
    [
        (SENDER, msgspec.structs.replace(RECEIVER, connector="pages"), "no connector 'urls'.*known: pages"),
        (SENDER, msgspec.structs.replace(RECEIVER, item_type="Page"), "carries Page here and str there"),
        (SENDER, msgspec.structs.replace(RECEIVER, sending=True), "both sides .* want to send"),
    ],
    ids=["unknown connector", "wrong type", "same direction"],
)
def test_sides_that_do_not_fit_are_refused_and_told_why(
    dialer: About, acceptor: About, reason: str, run: Run, joined_pipes: Any
) -> None:
    async def test() -> None:
        for error in await shake(joined_pipes(), FakeParty(dialer), FakeParty(acceptor)):
            assert isinstance(error, RemoteRefused)
            with pytest.raises(RemoteRefused, match=reason):
                raise error

    run(test())


def test_an_objection_of_the_party_is_passed_on(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        refused, _ = await shake(joined_pipes(), FakeParty(SENDER), FakeParty(RECEIVER, "too many senders"))
        assert isinstance(refused, RemoteRefused)
        assert "too many senders" in str(refused)

    run(test())


@pytest.mark.parametrize(
    ("dialer_secret", "acceptor_secret"),
    [(b"another secret altogether", SECRET), (b"", SECRET), (SECRET, b"")],
    ids=["wrong", "none there", "none here"],
)
def test_without_the_same_secret_nobody_gets_in(
    dialer_secret: bytes, acceptor_secret: bytes, run: Run, joined_pipes: Any
) -> None:
    async def test() -> None:
        refused, _ = await shake(joined_pipes(), FakeParty(SENDER), FakeParty(RECEIVER), dialer_secret, acceptor_secret)
        assert isinstance(refused, RemoteRefused)
        assert "secret" in str(refused)
        assert SECRET.decode() not in str(refused)

    run(test())


def test_an_acceptor_that_cannot_prove_itself_is_left(run: Run, joined_pipes: Any) -> None:
    async def impostor(pipe: FramePipe) -> None:
        pipe.put(FrameKind.CHALLENGE, encode(Challenge(VERSION, bytes(32))))
        hello = decode((await pipe.read())[1], Hello)
        pipe.put(FrameKind.WELCOME, encode((RECEIVER, hello.proof)))

    async def test() -> None:
        ours, theirs = joined_pipes()
        introduced = handshake.introduce(ours, SECRET, FakeParty(SENDER))
        result, _ = await asyncio.gather(introduced, impostor(theirs), return_exceptions=True)
        assert isinstance(result, RemoteRefused), "its own proof, reflected, is none"

    run(test())


def test_a_recorded_proof_is_worth_nothing_on_another_connection(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        recorded: list[bytes] = []

        async def recorder(pipe: FramePipe) -> None:
            pipe.put(FrameKind.CHALLENGE, encode(Challenge(VERSION, bytes(32))))
            recorded.append((await pipe.read())[1])
            pipe.close()

        ours, theirs = joined_pipes()
        introduced = handshake.introduce(ours, SECRET, FakeParty(SENDER))
        await asyncio.gather(introduced, recorder(theirs), return_exceptions=True)
        ours, theirs = joined_pipes()
        accepting = asyncio.ensure_future(handshake.accept(theirs, SECRET, {"urls": FakeParty(RECEIVER)}))
        assert (await ours.read())[0] is FrameKind.CHALLENGE
        ours.put(FrameKind.HELLO, recorded[0])
        with pytest.raises(RemoteRefused, match="secret"):
            await accepting

    run(test())


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (FrameKind.HELLO, b""),
        (FrameKind.HELLO, b"\xc1"),
        (FrameKind.HELLO, b"\xc7\x05\x01hello"),
        (FrameKind.HELLO, b"\xdd\xff\xff\xff\xff"),
        (FrameKind.HELLO, b"\x91" * 3000),
        (FrameKind.HELLO, encode((VERSION, SENDER, b"short nonce", b""))),
        (FrameKind.DATA, b"items already"),
    ],
)
def test_hostile_first_words_are_broken_frames(kind: FrameKind, payload: bytes, run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        ours, theirs = joined_pipes()
        ours.put(kind, payload)
        with pytest.raises(BrokenFrame):
            await handshake.accept(theirs, SECRET, {"urls": FakeParty(RECEIVER)})

    run(test())


def test_secrets_come_from_a_closed_file_or_the_environment(tmp_path: Path) -> None:
    assert handshake.read_secret("", {}) == b""
    assert handshake.read_secret("", {"GOSSAMER_SECRET": SECRET.decode()}) == SECRET
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\n")
    file.chmod(0o600)
    assert handshake.read_secret(str(file), {"GOSSAMER_SECRET": "something else that is long"}) == SECRET
    file.chmod(0o644)
    with pytest.raises(WiringError, match="chmod 600"):
        handshake.read_secret(str(file), {})
    with pytest.raises(WiringError, match="cannot be read"):
        handshake.read_secret(str(tmp_path / "missing"), {})
    with pytest.raises(WiringError, match="shorter"):
        handshake.read_secret("", {"GOSSAMER_SECRET": "short"})

"""https: names and certificates are verified, whatever the address (faults, chapter G)."""

import asyncio
import datetime
import ssl
from pathlib import Path
from typing import Any

import pytest

from gossamer.engine.errors import SettingError
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task

x509 = pytest.importorskip("cryptography.x509", reason="the package cryptography makes the certificates of this test")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of `a.test`, signed by itself, in one PEM file."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "a.test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("a.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path = tmp_path_factory.mktemp("tls") / "a.test.pem"
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + made.public_bytes(pem))
    return path


@pytest.mark.parametrize(
    ("host", "trusted", "verify", "outcome"),
    [
        ("a.test", True, True, Outcome.OK),
        ("b.test", True, True, Outcome.TLS_FAILED),
        ("127.0.0.1", True, True, Outcome.TLS_FAILED),
        ("a.test", False, True, Outcome.TLS_FAILED),
        ("b.test", False, False, Outcome.OK),
    ],
)
def test_certificates(
    run: Any, fetching: Any, certificate: Path, host: str, trusted: bool, verify: bool, outcome: Outcome
) -> None:
    async def body() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        sheet = HttpSheet(verify=verify, ca_file=str(certificate) if trusted else "")
        async with FakeWeb({"/": "secret"}, tls=context) as web, fetching(web, sheet) as module:
            response = await module.fetch(Task(f"https://{host}/", host=host))
            assert response.outcome is outcome, response.error
            assert bool(web.requests) == (outcome is Outcome.OK)
            assert response.is_unverified is not verify
            assert response.error or outcome is Outcome.OK

    run(body())


@pytest.mark.parametrize(("content", "says"), [(None, "No such file"), ("no certificate", "no certificate in PEM")])
def test_a_file_without_certificates_is_refused_at_once(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingError, match=says):
        HttpModule(HttpSheet(ca_file=str(path)))


def test_a_server_that_does_not_speak_tls(run: Any, fetching: Any) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def body() -> None:
        async with FakeWeb({}) as web, await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            web.port = server.sockets[0].getsockname()[1]
            async with fetching(web) as module:
                response = await module.fetch(Task("https://a.test/", host="a.test"))
                assert response.outcome is Outcome.TLS_FAILED, response.error

    run(body())


def test_a_server_goes_on_with_its_session_however_many_others_were_asked_meanwhile(
    run: Any, fetching: Any, certificate: Path
) -> None:
    async def body() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        hosts = [f"h{n}.test" for n in range(100)]  # four times as many as libcurl remembers by itself
        pages = {"/": FakePage("page", close=True)}
        async with FakeWeb(pages, tls=context) as web, fetching(web, HttpSheet(verify=False)) as module:
            for host in (*hosts, *hosts):
                assert (await module.fetch(Task(f"https://{host}/", host=host))).outcome is Outcome.OK
        assert context.session_stats()["hits"] == len(hosts)

    run(body())

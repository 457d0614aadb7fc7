"""The settings of the protocol module for http and https, :class:`~gossamer.stages.fetch.http.HttpModule`."""

from typing import Annotated, Literal

import msgspec

from gossamer.flow.sheet import Sheet, setting
from gossamer.model.body import THRESHOLD
from gossamer.stages.fetch.head import CAPS


class HttpSheet(Sheet, frozen=True):
    """Settings for http and https. Defaults are design question 12's and docs/design/faults.md's."""

    user_agent: Annotated[str, setting("Send this as User-Agent; empty: product, version and contact.")] = ""
    contact: Annotated[
        str, setting("Name this URL or mail address in requests, so that site owners can reach you.")
    ] = ""
    header: Annotated[tuple[str, ...], setting("Also send these request fields, each as `Name: value`.")] = ()
    headers: Annotated[
        dict[str, tuple[str, ...]],
        setting("Also send these request fields, each as `Name: value`, to these hosts, as `*.example.org`."),
    ] = msgspec.field(default_factory=dict)
    credentials: Annotated[
        tuple[str, ...],
        setting(
            "Send this field to one site alone, as `SITE Name: value` (SITE as https://example.org); it is never archived.",
            secret=True,
            names="a secret",
        ),
    ] = ()
    cookies: Annotated[
        Literal["off", "host", "keep"],
        setting(
            "Send cookies back to the server that set them, within bounds: `host` in this run, `keep` in later runs too."
        ),
    ] = "off"
    cookie_file: Annotated[
        str,
        setting(
            "Begin with the cookies of this file (Netscape's format or JSON); other users must not be able to read it.",
            names="a file",
        ),
    ] = ""
    directory: Annotated[
        str,
        setting(
            "Use this crawl directory; kept cookies lie in `state/cookies` below it.",
            restart="they lie there",
            names="a folder",
        ),
    ] = ""
    proxy: Annotated[
        tuple[str, ...],
        setting(
            "Send requests through http://[USER:PASSWORD@]HOST:PORT or socks5h://..., taking turns if there are "
            "several; @FILE and $NAME read proxies from a file or an environment variable. HTTP_PROXY and its like "
            "are ignored.",
            secret=True,
            names="a secret",
        ),
    ] = ()
    http2: Annotated[
        bool,
        setting(
            "Offer HTTP/2 to https servers. With one request at a time per host HTTP/2 gains nothing, and the "
            "archive has to render its answers as 1.1, so it is off by default."
        ),
    ] = False
    timings: Annotated[bool, setting("Record for each answer when each phase of the fetch ended.")] = False
    connect: Annotated[float, setting("Give up a TCP connection that takes longer than this.", unit="s", gt=0)] = 10.0
    tls: Annotated[
        float, setting("Give up a TLS handshake that takes longer than this, after `connect`.", unit="s", gt=0)
    ] = 10.0
    first_byte: Annotated[
        float, setting("Give up an answer whose head takes longer than this after the request.", unit="s", gt=0)
    ] = 30.0
    deadline: Annotated[float, setting("Give up a fetch that takes longer than this in all.", unit="s", gt=0)] = 120.0
    least_speed: Annotated[float, setting("Give up a body that comes slower than this.", unit="bytes/s", ge=0)] = 100.0
    speed_window: Annotated[float, setting("Measure the least speed over this time.", unit="s", gt=0)] = 30.0
    bandwidth: (
        Annotated[float, setting("Take at most this many bytes of bodies a second in all.", unit="bytes/s", gt=0)]
        | None
    ) = None
    max_body: Annotated[
        int, setting("Keep at most this many bytes of a body, both as sent and as decoded.", unit="bytes", ge=1)
    ] = 16 << 20
    max_head: Annotated[
        int, setting("Refuse an answer whose head is longer than this.", unit="bytes", ge=1024, le=256 << 10)
    ] = CAPS.size
    max_fields: Annotated[
        int, setting("Refuse an answer with more header fields than this.", unit="fields", ge=1, le=4000)
    ] = CAPS.fields
    spool_above: Annotated[int, setting("Keep bodies larger than this on the disk.", unit="bytes", ge=0)] = THRESHOLD
    spool: Annotated[
        str,
        setting(
            "Keep large bodies in this directory while they are used; if empty, in the system's temporary directory.",
            names="a folder",
        ),
    ] = ""
    connections: Annotated[
        int,
        setting(
            "Have at most this many connections open, busy and idle; if 0, as many as there are requests at once, and at least "
            "256. The system's limit of open files bounds both.",
            unit="connections",
            ge=0,
            restart="requests under way hold them",
        ),
    ] = 0
    verify: Annotated[bool, setting("Refuse servers whose certificate is not valid for their name.")] = True
    ca_file: Annotated[
        str, setting("Trust the certificates in this file (PEM); if empty, the system's.", names="a file")
    ] = ""

"""The settings of the protocol module for http and https, :class:`~gossamer.stages.fetch.http.HttpModule`."""

from typing import Annotated, Literal

import msgspec

from gossamer.flow.sheet import Sheet, setting
from gossamer.model.body import THRESHOLD
from gossamer.stages.fetch.head import CAPS


class HttpSheet(Sheet, frozen=True):
    """Settings for http and https. Defaults are design question 12's and docs/design/faults.md's."""

    user_agent: Annotated[str, setting("Sent as User-Agent; empty: product, version and contact.")] = ""
    contact: Annotated[str, setting("URL or mail address that people who see our requests can turn to.")] = ""
    header: Annotated[tuple[str, ...], setting("Further request fields, each as `Name: value`.")] = ()
    headers: Annotated[
        dict[str, tuple[str, ...]],
        setting("Further request fields, each as `Name: value`, for these hosts, as `*.example.org`."),
    ] = msgspec.field(default_factory=dict)
    credentials: Annotated[
        tuple[str, ...],
        setting(
            "Fields that one site alone gets, each as `SITE Name: value` (SITE as https://example.org); never archived.",
            secret=True,
        ),
    ] = ()
    cookies: Annotated[
        Literal["off", "host", "keep"],
        setting(
            "`host`: what servers set goes back to them, within bounds; nothing is kept. `keep`: it goes back in later runs too."
        ),
    ] = "off"
    cookie_file: Annotated[
        str,
        setting("Begin with the cookies of this file, in Netscape's form or JSON; it must be closed to other users."),
    ] = ""
    directory: Annotated[
        str, setting("The crawl directory; kept cookies lie in `state/cookies` below it.", restart="they lie there")
    ] = ""
    proxy: Annotated[
        str,
        setting("http://[USER:PASSWORD@]HOST:PORT or socks5h://...; the environment's are never used.", secret=True),
    ] = ""
    http2: Annotated[
        bool,
        setting(
            "Offer HTTP/2 to https servers. With one live request a host it gains nothing, and the archive has to render "
            "it as 1.1, so it is off."
        ),
    ] = False
    timings: Annotated[bool, setting("Say of each answer when its phases ended.")] = False
    connect: Annotated[float, setting("For the TCP connection.", unit="s", gt=0)] = 10.0
    tls: Annotated[float, setting("For the TLS handshake, after `connect`.", unit="s", gt=0)] = 10.0
    first_byte: Annotated[float, setting("From the request to the end of the answer's head.", unit="s", gt=0)] = 30.0
    deadline: Annotated[float, setting("For a whole fetch.", unit="s", gt=0)] = 120.0
    least_speed: Annotated[float, setting("A body slower than this is given up.", unit="bytes/s", ge=0)] = 100.0
    speed_window: Annotated[float, setting("Over which the least speed is measured.", unit="s", gt=0)] = 30.0
    max_body: Annotated[int, setting("Bytes of a body that are kept, as sent and decoded.", unit="bytes", ge=1)] = (
        16 << 20
    )
    max_head: Annotated[
        int, setting("Bytes of an answer's head; a longer one is refused whole.", unit="bytes", ge=1024, le=256 << 10)
    ] = CAPS.size
    max_fields: Annotated[
        int, setting("Header fields of an answer; one with more is refused whole.", unit="fields", ge=1, le=4000)
    ] = CAPS.fields
    spool_above: Annotated[int, setting("A body larger than this is kept on disk.", unit="bytes", ge=0)] = THRESHOLD
    spool: Annotated[str, setting("Where large bodies lie while they are used; empty: the system's own place.")] = ""
    connections: Annotated[
        int,
        setting(
            "Open at once, busy and idle; fewer where the system allows few open files.",
            unit="connections",
            ge=1,
            restart="requests under way hold them",
        ),
    ] = 256
    verify: Annotated[bool, setting("Refuse servers whose certificate is not valid for their name.")] = True
    ca_file: Annotated[str, setting("Certificates to trust (PEM); empty: the system's.")] = ""

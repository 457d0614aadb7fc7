"""The options of a crawl about what it says of itself, to whom, and by which way.

Place in the flow: :class:`~gossamer.crawls.options.CrawlOptions` has them.
"""

from typing import Annotated, Literal

from gossamer.crawls.process_options import ProcessOptions
from gossamer.engine.sheet import setting

_BEGINNING = "it says how a crawl begins"
_SEEDS = "the seeds decide who may see it; stop the crawl, and give it to gossamer resume"


class NetworkOptions(ProcessOptions, frozen=True):
    """Identity, credentials, proxies and addresses."""

    user_agent: Annotated[str, setting("Send this user agent instead of `Gossamer/VERSION (+CONTACT)`.")] = ""
    contact: Annotated[
        str,
        setting(
            "Give site owners this URL or mail address as your contact; required to crawl beyond this machine. "
            "GOSSAMER_CONTACT sets it too."
        ),
    ] = ""
    header: Annotated[
        tuple[str, ...],
        setting(
            "Send this header field, as `Name: value`; one that looks secret, as `X-Api-Key`, goes to the seeds' hosts alone, and "
            "no archive holds it (repeatable)."
        ),
    ] = ()
    header_for: Annotated[
        tuple[str, ...],
        setting(
            "Send the fields of --header that look secret to this HOST too, on every port unless it is HOST:PORT (repeatable).",
            restart=_SEEDS,
        ),
    ] = ()
    auth: Annotated[
        tuple[str, ...],
        setting(
            "Send HOST=USER:PASSWORD, or USER:PASSWORD for the seeds' hosts, to that host alone. HOST=$NAME and HOST=@FILE take "
            "USER:PASSWORD or `Bearer TOKEN` from the environment or a file, and keep it out of crawl.toml (repeatable).",
            restart=_SEEDS,
            secret=True,
            names="a secret",
        ),
    ] = ()
    cookies: Annotated[
        Literal["off", "host", "keep"],
        setting(
            "Send cookies back to the server that set them: `host` while the crawl runs, `keep` also when it goes on later. Kept "
            "cookies lie in a file of the crawl that only its owner can read; no archive holds their values.",
            sets="http",
        ),
    ] = "off"
    cookie_file: Annotated[
        str,
        setting(
            "Begin with the cookies of this file (cookies.txt, or JSON as browsers export it), and keep those that servers "
            "set while the crawl runs.",
            restart=_BEGINNING,
            names="a file",
        ),
    ] = ""
    proxy: Annotated[
        tuple[str, ...],
        setting(
            "Send requests through http://[USER:PASSWORD@]HOST:PORT or socks5h://..., taking turns if there are "
            "several (repeatable). @FILE reads one proxy a line, $NAME reads an environment variable; crawl.toml "
            "holds the content of neither. A proxy that fails is not used for a while. HTTP_PROXY and its like are "
            "ignored.",
            secret=True,
            names="a secret",
        ),
    ] = ()
    http2: Annotated[bool, setting("Offer HTTP/2 to https servers.", sets="http")] = False
    ca_file: Annotated[
        str, setting("Trust the certificates in this file (PEM) instead of the system's.", names="a file", sets="http")
    ] = ""
    resolve: Annotated[
        tuple[str, ...],
        setting(
            "Connect to ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080` (repeatable).",
            names="an address",
            sets="dns",
        ),
    ] = ()
    allow_network: Annotated[
        tuple[str, ...],
        setting(
            "Let links reach this private network (CIDR) (repeatable).",
            names="a private network",
            sets="dns.allow_networks",
        ),
    ] = ()

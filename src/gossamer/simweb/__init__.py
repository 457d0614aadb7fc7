"""A simulated web that any crawler can be run against, and an auditor that judges the crawl.

`SimWeb(spec)` is the web as a function, `serve` puts it on the loopback network for a test, `run`
does so, `beside` in a process of its own, `audit` reads a server's log and reports how the crawler did. See
docs/simweb.md.
"""

from gossamer.simweb.beside import beside
from gossamer.simweb.server import Serving, run, serve
from gossamer.simweb.site import SimWeb
from gossamer.simweb.spec import ServeOptions, SpecError, WebSpec

__all__ = ["ServeOptions", "Serving", "SimWeb", "SpecError", "WebSpec", "beside", "run", "serve"]

"""The URL that a link of an archived document leads to, by the rules by which its crawl followed links.

Place in the flow: a mirror (:mod:`gossamer.analysis.mirror`) and a replay (:mod:`gossamer.analysis.replaying`) find by it which
archived document a link means.
"""

from collections.abc import Mapping
from typing import Any

from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.parsing.links import JoinCache, LinksSheet, normaliser, resolve_links, with_queries
from gossamer.values.visit import Found


class LinkTargets:
    """Resolves links as one crawl does."""

    def __init__(self, wiring: Wiring) -> None:
        """`wiring` is the crawl's own."""
        self._normalise = normaliser(build(LinksSheet, _settings(wiring)))
        self._cache = JoinCache()

    def __repr__(self) -> str:
        return "<LinkTargets>"

    def target(self, href: str, relation: str, *, url: str, base: str, charset: str) -> str:
        """The canonical URL; empty where the crawl could not follow the link.

        Args:
            href: the link as it is written.
            relation: the kind of link, as `img src`.
            url: the document that holds it, canonical.
            base: the URL that its links are relative to.
            charset: the document's encoding; empty for UTF-8.
        """
        found = with_queries((Found(href, relation),), base, charset)
        links, _ = resolve_links(found, base, url, self._cache, 1, self._normalise)
        return links[0].url if links else ""


def _settings(wiring: Wiring) -> Mapping[str, Any]:
    plan = wiring.components.get("links")
    return plan.settings if plan is not None and plan.use == "links" else {}

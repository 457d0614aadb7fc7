"""Where answers lead apart from their documents: redirects, `Refresh` and `Link` fields; and links that a page disowns.

Place in the flow: the process stage (:mod:`~gossamer.stages.process.component`) takes the targets as links of their own kinds,
which every later stage judges like any other. So does :mod:`gossamer.mobile.judging`.
"""

import msgspec

from gossamer.model.errors import UnreadableUrl
from gossamer.model.requesting import Requested, redirected, requested
from gossamer.model.requisites import redirect_of
from gossamer.model.url import canonical, of_field, site_of
from gossamer.model.visit import HTML_TYPES, Found, Response, Visit
from gossamer.reading.document import Document
from gossamer.stages.process.html import HtmlLinksSheet, found_in_fields, refresh_target


def refresh_of(response: Response) -> tuple[Found, ...]:
    """The target of a `Refresh` field: a link like any other, never obeyed in place (fault 33)."""
    field = response.header("refresh")
    target = refresh_target(of_field(field)) if field else None
    return (Found(target, "header refresh"),) if target else ()


def before(document: Document) -> tuple[Found, ...]:
    """The links that came with a document, before its own. Those in `Link` fields of a page are among its own."""
    refresh = refresh_of(document.response)
    if document.mime in HTML_TYPES or not document.field_links:
        return refresh
    return (*refresh, *found_in_fields(document.field_links, HtmlLinksSheet()))


def with_target(visit: Visit) -> Visit:
    """The target of a redirect as the one link of the visit; a redirect without one is only its status."""
    task = visit.task
    target = of_field(visit.response.header("location"))
    if not target or (task.request is not None and task.request.redirects == "keep"):
        return visit
    request = task.request
    if session := visit.response.session:  # what a redirect leads to is asked for by whoever was led there
        request = msgspec.structs.replace(request or requested(), session=session)
    if request is not None:
        request = _led_on(request, visit.url, visit.response.status, target)
    if visit.response.way is not None:
        request = msgspec.structs.replace(request or requested(), way=visit.response.way)
    found = (Found(target, redirect_of(task.found_by), request=request),)
    return msgspec.structs.replace(visit, base=visit.url, found=found)


def disowned(visit: Visit) -> Visit:
    """The visit of a page that says `nofollow` of itself: none of its links is to be followed."""
    found = tuple(Found(one.href, one.relation, one.anchor, True, one.request) for one in visit.found)
    return msgspec.structs.replace(visit, found=found)


def _led_on(request: Requested, url: str, status: int, target: str) -> Requested:
    """What is asked for at the target of a redirect."""
    try:
        is_same_site = site_of(canonical(target, url)) == site_of(url)
    except UnreadableUrl:
        is_same_site = False  # the links stage will say that it is no URL
    return redirected(request, status, is_same_site=is_same_site)

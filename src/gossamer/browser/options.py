"""Options of `gossamer crawl` for pages that need a browser, and what they change in its wiring."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from gossamer.crawls.options import part_of
from gossamer.engine.sheet import Sheet, setting
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.builder import Builder

Choice = Literal["never", "asked", "auto", "always"]
"""Which pages are rendered: none; those that a spider or a rule asks for; besides, those that seem to need it; all."""

General = Literal["scroll", "more", "cookies"]
"""Actions that need no selector."""

#: The names of the units, and of the arrows to and from the stage.
RENDER, WANTS, SHOWN = "render", "wants", "rendered"


# Settings of the stage, too (:mod:`gossamer.browser.render_stage`).

Rules = Annotated[
    tuple[str, ...],
    setting(
        'Render pages that an expression holds for by this choice, as `always: path("/app/**")` or `never: label(list)`; '
        "the first that holds counts."
    ),
]

Actions = Annotated[
    tuple[General, ...],
    setting(
        "On each rendered page, scroll to its end while it grows (`scroll`), click what loads more (`more`), or accept "
        "cookies (`cookies`), in this order."
    ),
]

PagesAtOnce = Annotated[int, setting("Render at most this many pages at once.", unit="pages", ge=1, le=64)]

Post = Annotated[
    bool, setting("Send `POST` requests of rendered pages to their own hosts; they may change something there.")
]

Screenshot = Annotated[bool, setting("Keep a picture of each rendered page in the archive.")]

ProfileFile = Annotated[
    str,
    setting(
        "Render pages, and send requests, with the cookies and the storage of this file of `gossamer profile`, which other users "
        "must not be able to read.",
        names="a file",
    ),
]

Program = Annotated[str, setting("Render with this program; by default, the Chromium of this machine.", names="code")]


class RenderOptions(Sheet, frozen=True):
    """Which pages a browser renders."""

    render: Annotated[
        Choice,
        setting(
            "Render the pages that need a browser (`auto`), every HTML page (`always`), none (`never`), or those that a spider or "
            "`--render-rule` asks for (`asked`); this needs Chromium.",
        ),
    ] = "never"
    render_rule: Rules = ()
    render_actions: Actions = ()
    render_places: PagesAtOnce = 4
    render_post: Post = False
    screenshot: Screenshot = False
    profile: Annotated[ProfileFile, setting(restart="it says how a crawl begins")] = ""
    browser: Program = ""


def wire(builder: "Builder") -> None:
    """Put the stage behind fetch. Raises UsageError: options do not fit together. Raises WiringError: the wiring lacks a stage."""
    from gossamer.engine.errors import WiringError
    from gossamer.engine.wiring import ComponentPlan, ConnectorPlan
    from gossamer.spiders.spider_stage import SPIDER

    options = part_of(builder.options, RenderOptions)
    if options.render == "never":
        if options != RenderOptions():
            raise UsageError(
                "--screenshot, --profile, --browser and the options of rendering need --render asked, --render auto or "
                "--render always"
            )
        return
    if builder.options.crawlers:
        raise UsageError("--render works without processes of --crawlers: use --agents, or leave --crawlers out")
    builder.set_where_present("politeness", {"host_turns": True})  # requests of a page go to hosts of any agent
    profile = ""
    if options.profile:
        from gossamer.browser.profiles import read_profile

        if builder.options.cookie_file:
            raise UsageError("--profile brings its own cookies: leave --cookie-file out")
        profile = str(Path(options.profile).absolute())
        read_profile(Path(profile))
        builder.set("profile", "http", {"cookie_file": profile})
    wiring = builder.wiring
    if any(plan.use == RENDER for plan in wiring.components.values()):
        return  # it was kept with the crawl
    plans = {plan.use: name for name, plan in wiring.components.items()}
    if missing := {"fetch", "frontier", "commit", "content-seen"} - plans.keys():
        raise WiringError(f"{wiring.source}: no component uses {sorted(missing)[0]!r}, so that no page can be rendered")
    fetch, frontier = wiring.components[plans["fetch"]], wiring.components[plans["frontier"]]
    settings: dict[str, Any] = {"pages": options.render, "browser": options.browser, "places": options.render_places}
    settings |= {"rules": list(options.render_rule), "actions": list(options.render_actions)}
    settings |= {"profile": profile, "screenshot": options.screenshot}
    choosers: dict[str, str | list[str]] = {"pages": [SPIDER]} if SPIDER in wiring.providers else {}
    changed = {
        plans["fetch"]: msgspec.structs.replace(fetch, ports={**fetch.ports, "visits": SHOWN}),
        plans["frontier"]: msgspec.structs.replace(frontier, ports={**frontier.ports, "wants": WANTS}),
        RENDER: ComponentPlan(
            RENDER,
            ports={"inbox": SHOWN, "outbox": fetch.ports["visits"], "wants": WANTS},
            providers={"answers": WANTS, "choosers": choosers},
            settings=settings,
        ),
    }
    connectors = {**wiring.connectors, SHOWN: ConnectorPlan(), WANTS: ConnectorPlan()}
    builder.wiring = msgspec.structs.replace(wiring, components={**wiring.components, **changed}, connectors=connectors)
    ledger = wiring.components[plans["commit"]].providers["ledger"]
    builder.add_provider(WANTS, WANTS, {"post": options.render_post}, {"ledger": ledger})
    builder.bind_also(plans["frontier"], "gates", "fetch", WANTS)
    builder.bind_also(plans["commit"], "keepers", "visits", WANTS)
    for name, plan in wiring.components.items():
        if plan.use == "filter":  # lets go of parts of pages that the archive has since a rendered page asked for them
            builder.bind_also(name, "filters", "follow", WANTS)

"""Pages that need a browser: a Chromium without a network, which gets every byte from the crawl.

Place in the flow: the stage `render` (:mod:`render_stage`) stands behind fetch and asks :mod:`needs` which pages it is for;
:mod:`tabs` lends a tab; :mod:`rendering` shows one page in it and reads it; :mod:`wants` has the crawl fetch what the page asks
for; in a run over the archive, :mod:`again` answers. :mod:`profiles` keeps a person's log-in. :mod:`chromium`, :mod:`guard` and
:mod:`devtools` are the browser itself: its start, its walls, and its language.

Promises: a page is never worse than without a browser; what a page asks for is fetched as everything else is, under robots.txt,
politeness and guard, and stands in the archive; the browser reaches no network, no file and no other page.

Open first: :mod:`rendering`, then :mod:`render_stage`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="browser",
    title="Pages that need a browser",
    example="gossamer crawl https://example.org/ --render auto",
    options="gossamer.browser.options:RenderOptions",
    wire="gossamer.browser.options:wire",
    wire_where=(),
    commands={
        "render": Command("gossamer.browser.commands:render", "Show one page as a browser makes it.", "Try"),
        "profile": Command(
            "gossamer.browser.commands:profile", "Log in with a browser, for pages that are rendered.", "Try"
        ),
    },
    components={"render": "gossamer.browser.render_stage:Render"},
    providers={"wants": "gossamer.browser.wants:Wants", "kept-answers": "gossamer.browser.again:KeptAnswers"},
)

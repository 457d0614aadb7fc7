"""The chores of developers: `./gossamer dev VERB`. A chore takes the rest of the line, and returns the exit status."""

#: Verb -> where it is, and its help. Campaigns have a table of their own (:mod:`tools.killing`).
VERBS = {
    "accuracy": (
        "check:accuracy",
        "Crawl sites whose every page is known, the largest with 3,906 and a hundred at random (about half a minute).",
    ),
    "changelog": (
        "release:gather",
        "Gather changes/ into CHANGELOG.md under the version of this checkout; `changelog --draft` only prints it.",
    ),
    "check": (
        "check:main",
        "Everything but the tests: lint, format, types, layers, locks, change fragments, reference, measures of the house.",
    ),
    "divided": (
        "check:divided",
        "Cut every arrow that may leave the process, stages in two processes, whole and killed (about a minute).",
    ),
    "docs": (
        "docs:main",
        "Write docs/reference/ and other generated files; --check only says if they are fresh, --site FOLDER builds the site.",
    ),
    "format": ("check:reformat", "Format the code and mend what the linter can mend."),
    "honest-sites": (
        "honest_sites:main",
        "Crawl sites whose truth is known, and prove that no page is lost: `honest-sites FOLDER... --simulated PAGES[:SEEDS]`.",
    ),
    "lock": (
        "release:relock",
        "Lock the dependencies with hashes: `lock` keeps versions that fit, `lock --upgrade [PACKAGE...]` raises them.",
    ),
    "new-change": ("release:new_change", "Begin a change fragment: `new-change KIND SLUG [TEXT...]`."),
    "package": (
        "release:package",
        "Build wheel and sdist, and try both in empty environments: `package [--python P]... [--out FOLDER] [--wheels]`.",
    ),
    "picture": (
        "docs:picture",
        "Draw docs/images/watch.svg anew: the overview of a crawl of a simulated web, as `gossamer watch` shows it.",
    ),
    "properties": (
        "check:properties",
        "Ask the property tests for new cases, 5,000 each, where the suite asks for the same ones each time (some minutes).",
    ),
    "prose": ("reading:prose", "Measure text and Markdown of real pages: `prose FOLDER=SELECTOR[!MENUS]...`."),
    "ray": (
        "check:ray",
        "Read crawls as Ray datasets, from an environment of its own, which has 140 MB to download (some minutes).",
    ),
    "readers": (
        "check:readers",
        "Let pywb replay a crawl, py-wacz validate it and pyftpdlib be crawled, from an environment of their own (a minute).",
    ),
    "rendered": (
        "rendered:main",
        "Compare the rule of `--render auto` with what a browser shows of real sites: `rendered FOLDER [SITE...]` (half an hour).",
    ),
    "schema-org": (
        "docs:schema_org",
        "Bundle another version of schema.org's JSON-LD context: `schema-org FILE VERSION`.",
    ),
    "skimmed": (
        "reading:skimmed",
        "Compare what a skim finds in HTML files with what the parser's tree holds: `skimmed FOLDER...`.",
    ),
    "test": (
        "check:test",
        "Run the tests, but for the slow ones; --all runs these too; arguments go to pytest (paths, -k WORD, -x, --pdb ...).",
    ),
    "verify": (
        "tools.verifying:main",
        "Compare a crawl's ledger, archive, log, tables and counters with each other: `verify DIR...` (exit status 0 or 5).",
    ),
}

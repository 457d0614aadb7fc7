"""Run by the Python of Playwright's own environment: shows pages as people do who render with it, and reads their markup.

Place in the flow: :mod:`tools.bench.rendering` starts it with the browser, the address of the pages, how many to show first, how
many to count, and whether one tab is kept. It writes a line when it is warm, goes on when it gets one, writes another when it has
shown all, and ends when its input does. Its browser has no sandbox where it is root's: Playwright starts none by default.
"""

import sys

from playwright.sync_api import Browser, Page, sync_playwright


def _show(browser: Browser, kept: "Page | None", address: str) -> None:
    tab = kept or browser.new_context().new_page()
    tab.goto(address, wait_until="load")
    assert len(tab.content()) > 10_000
    if kept is None:
        tab.context.close()


def main() -> None:
    program, site, warm, count, how = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        kept = browser.new_context().new_page() if how == "kept" else None
        for number in range(int(warm)):
            _show(browser, kept, f"{site}/p{number}.html")
        print("warm", flush=True)
        sys.stdin.readline()
        for number in range(int(warm), int(warm) + int(count)):
            _show(browser, kept, f"{site}/p{number}.html")
        print("done", flush=True)
        sys.stdin.read()
        browser.close()


if __name__ == "__main__":
    main()

"""Actions on a page that has come to rest: scroll, load more, accept cookies, click, fill in, wait.

Place in the flow: :mod:`gossamer.browser.rendering` calls :func:`act` for each action of the page, and reads the page after the
last one. An action is one call of a script in a world of its own, which the scripts of the page do not reach; they only see its
events. After it, the page's clock runs for a moment, and stands still while the page waits for what it asks for.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from gossamer.values.request_identity import Action

#: Milliseconds of the page's own time that an action gets to have its effect, and between two looks for an element that is awaited.
EFFECT: Final = 2_000
LOOK: Final = 500

#: Seconds between two looks whether a frame was drawn, and how many there are: a page sees that it was scrolled when it is
#: drawn, and the clock of the page, which runs ahead, does not wait for that. A screen has a frame in 17 ms.
FRAME: Final = 0.03
MOST_LOOKS: Final = 30

#: Does one action: `done`, `none` if there is no such element, `password` if it is one that is left alone; of `scroll`, the height
#: of the page. The buttons of consent managers are those of OneTrust, Cookiebot, Google's Funding Choices, Usercentrics, Didomi,
#: Axeptio, Quantcast, Osano, Complianz and TrustArc.
_ACT: Final = r"""((one) => {
  globalThis.drawn = false;
  requestAnimationFrame(() => { globalThis.drawn = true; });
  const shown = e => e.getClientRects().length > 0 && !e.disabled;
  const first = selector => [...document.querySelectorAll(selector)].find(shown);
  const words = e => (e.innerText || e.value || e.getAttribute('aria-label') || '').trim();
  const all = (within, selector) => [...within.querySelectorAll(selector)].filter(shown);
  const buttons = within => all(within, 'button, a, [role=button], input[type=button], input[type=submit]');
  const says = expression => e => words(e).length < 40 && expression.test(words(e));
  const press = e => {
    if (!e) { return 'none'; }
    e.scrollIntoView({block: 'center'});
    e.click();
    return 'done';
  };
  switch (one.do) {
    case 'scroll': {
      const root = document.scrollingElement || document.documentElement;
      window.scrollTo(0, root.scrollHeight);
      root.dispatchEvent(new WheelEvent('wheel', {deltaY: root.scrollHeight, bubbles: true}));
      return root.scrollHeight;
    }
    case 'more': {
      const said = new RegExp('^(load|show|see|view|read)( \\d+)? more|^more( results| items| posts)?$|^(mehr|weitere) '
        + '|mehr (anzeigen|laden)|^(voir|afficher|charger) plus|^(ver|cargar|mostrar) más|^tov[aá]bbi|^még több', 'i');
      return press(one.at ? first(one.at) : buttons(document).find(says(said)));
    }
    case 'cookies': {
      const known = '#onetrust-accept-btn-handler, #CybotCookiebotDialogBodyLevelButtonLevelOptinAllowAll, .fc-cta-consent, '
        + '[data-testid=uc-accept-all-button], #didomi-notice-agree-button, #axeptio_btn_acceptAll, .osano-cm-accept-all, '
        + '.cmplz-accept, #truste-consent-button, .qc-cmp2-summary-buttons [mode=primary], .cc-allow, .cc-dismiss';
      const yes = new RegExp('^(i |yes,? )?(accept|agree|allow|got it|ok(ay)?$|consent)|(akzeptieren|zustimmen|annehmen)'
        + "|^(tout )?accepter|^j'accepte|^aceptar|^accetta|^elfogad", 'i');
      const named = ['cookie', 'consent', 'gdpr'].flatMap(name => [`[id*=${name} i]`, `[class*=${name} i]`]);
      const said = all(document, named.join()).flatMap(buttons).find(says(yes));
      return press(first(known) || said);
    }
    case 'click':
      return press(first(one.at));
    case 'fill': {
      const field = first(one.at);
      if (!field) { return 'none'; }
      if (field.type === 'password') { return 'password'; }
      field.focus();
      if (field.isContentEditable) { field.textContent = one.text; } else { field.value = one.text; }
      field.dispatchEvent(new Event('input', {bubbles: true}));
      field.dispatchEvent(new Event('change', {bubbles: true}));
      return 'done';
    }
    case 'wait':
      return one.at && document.querySelector(one.at) ? 'done' : 'none';
  }
})(%s)"""

Evaluate = Callable[[str], Awaitable[Any]]
"""The value of an expression in the world that the page's scripts do not reach; None where it raises."""

GoOn = Callable[[int], Awaitable[bool]]
"""Lets the page have so many milliseconds of its own time, and its answers; whether it may have more."""


async def act(action: Action, evaluate: Evaluate, go_on: GoOn, counts: Counter[str]) -> bool:
    """Do an action, as often as it says.

    Args:
        action: the action.
        evaluate: reads from the page.
        go_on: lets the page run.
        counts: takes `did:KIND` for each time, and `failed:KIND` where nothing could be done.

    Returns:
        Whether the page may have more; not if it has reached a limit.
    """
    script = _ACT % msgspec.json.encode(action).decode()
    if action.do == "wait":
        for _ in range(math.ceil(1_000 * action.seconds / LOOK)):
            if await evaluate(script) == "done":
                break
            if not await go_on(LOOK):
                return False
        else:
            counts["failed:wait"] += bool(action.at)
        return True
    before: Any = None
    for number in range(action.times):
        found = await evaluate(script)
        if found == before and action.do == "scroll":
            break  # it has not grown
        if found in (None, "none", "password"):
            counts[f"failed:{action.do}"] += number == 0
            break
        before = found
        counts[f"did:{action.do}"] += 1
        for _ in range(MOST_LOOKS):  # until it is drawn
            await asyncio.sleep(FRAME)
            if not await go_on(1):
                return False
            if await evaluate("globalThis.drawn"):
                break
        if not await go_on(EFFECT):
            return False
    return True

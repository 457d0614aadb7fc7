// All crawls: those that the dashboard was started with, those of its sites, and links to dashboards elsewhere.
import { get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { sites } from "./sites.js";
import { count } from "./words.js";

const REFRESH = 5_000;

/** `enter` shows what the address names, after the only crawl has become it. */
export function crawls(parent, { session, alive, enter }) {
  let isLeft = false, timer = 0;
  const found = h("div"), places = h("section");
  const show = async () => {
    try {
      const all = await get("crawls"), own = all.filter((one) => !one.site);
      if (isLeft) return;
      alive(`as of ${new Date().toLocaleTimeString()}`);
      if (own.length === 1 && !location.hash) {
        history.replaceState(null, "", `#/${encodeURIComponent(own[0].key)}`);
        enter();
        return;
      }
      replace(found, h("h2", {}, "Crawls"), all.length ? table("Crawls", [
        ["crawl", (one) => h("a", { id: `to-${one.key}`, href: `#/${encodeURIComponent(one.key)}` }, one.directory)],
        ...(own.length < all.length ? [["site", (one) => one.site]] : []),
        ["state", (one) => one.standing?.state ?? one.trouble], ["pages", (one) => count(one.standing?.pages), true],
        ["queued", (one) => count(one.standing?.queued), true], ["errors", (one) => count(one.standing?.errors), true],
        ["worst problem", (one) => one.standing?.problems[0]?.reason ?? "", "prose"],
      ], all) : h("p", {}, "There is no crawl here yet."));
    } catch (error) { alive(error.message); }
    if (!isLeft) timer = setTimeout(show, REFRESH);
  };
  replace(parent, session.can_change ? h("p", {}, h("a", { id: "start-one", href: "#/start" }, "Start a crawl")) : [], found, places);
  sites(places, session, () => { clearTimeout(timer); show(); });
  show();
  return () => { isLeft = true; clearTimeout(timer); };
}

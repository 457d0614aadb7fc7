// The dashboard: which page is shown, by the part of the address after `#`.
import { get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { host } from "./host.js";
import { hosts } from "./hosts.js";
import { overview } from "./overview.js";
import { rewire } from "./rewire.js";
import { settings } from "./settings.js";
import { story } from "./story.js";
import { topology } from "./topology.js";
import { units } from "./units.js";
import { count } from "./words.js";

const content = document.getElementById("content"), crumbs = document.getElementById("crumbs"), alive = document.getElementById("alive");
const REFRESH = 5_000;
let leave = () => {}, session = { can_change: false };

function route() {
  leave();
  leave = () => {};
  alive.textContent = "";
  const [key, page, rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  replace(crumbs, key ? tabs(key, page) : []);
  document.title = key ? `${key} - Gossamer` : "Gossamer";
  if (!key) leave = list();
  else if (page === "hosts") leave = hosts(content, key, session, (text) => { alive.textContent = text; });
  else if (page === "host") leave = host(content, key, rest ?? "", session, (text) => { alive.textContent = text; });
  else if (page === "units") leave = units(content, key, (text) => { alive.textContent = text; });
  else if (page === "settings") leave = settings(content, key, rest ?? "", session, (text) => { alive.textContent = text; });
  else if (page === "topology") leave = topology(content, key, session, (text) => { alive.textContent = text; });
  else if (page === "rewire") leave = rewire(content, key, session, (text) => { alive.textContent = text; });
  else if (page === "why") leave = story(content, key, rest ?? "");
  else leave = overview(content, key, session, (text) => { alive.textContent = text; });
}

function tabs(key, page) {
  const link = (text, path, isHere) => h("li", {}, h("a", { href: `#/${encodeURIComponent(key)}${path}`, "aria-current": isHere ? "page" : null }, text));
  return h("ul", { class: "tabs" }, link("Overview", "", !page), link("Hosts", "/hosts", page === "hosts" || page === "host"), link("Units", "/units", page === "units"), link("Topology", "/topology", page === "topology"), link("Change the graph", "/rewire", page === "rewire"), link("Settings", "/settings", page === "settings"), link("Why this URL", "/why", page === "why"));
}

/** All crawls. */
function list() {
  let isLeft = false;
  const show = async () => {
    try {
      const crawls = await get("crawls");
      if (isLeft) return;
      alive.textContent = `as of ${new Date().toLocaleTimeString()}`;
      if (crawls.length === 1 && !location.hash) {
        history.replaceState(null, "", `#/${encodeURIComponent(crawls[0].key)}`);
        route();
        return;
      }
      replace(content, h("h2", {}, "Crawls"), crawls.length ? table("Crawls", [
        ["crawl", (one) => h("a", { id: `to-${one.key}`, href: `#/${encodeURIComponent(one.key)}` }, one.directory)],
        ["state", (one) => one.standing?.state ?? one.trouble], ["pages", (one) => count(one.standing?.pages), true],
        ["queued", (one) => count(one.standing?.queued), true], ["errors", (one) => count(one.standing?.errors), true],
        ["worst problem", (one) => one.standing?.problems[0]?.reason ?? ""],
      ], crawls) : h("p", {}, "There is no crawl here yet."));
    } catch (error) { alive.textContent = error.message; }
  };
  show();
  const timer = setInterval(show, REFRESH);
  return () => { isLeft = true; clearInterval(timer); };
}

addEventListener("hashchange", () => { route(); content.focus(); });
get("session").then((found) => { session = found; }).catch((error) => { alive.textContent = error.message; }).finally(route);

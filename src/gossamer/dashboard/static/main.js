// The dashboard: which page is shown, by the part of the address after `#`.
import { get } from "./api.js";
import { crawls } from "./crawls.js";
import { h, replace } from "./dom.js";
import { host } from "./host.js";
import { hosts } from "./hosts.js";
import { log } from "./log.js";
import { overview } from "./overview.js";
import { rewire } from "./rewire.js";
import { search } from "./search.js";
import { settings } from "./settings.js";
import { sparql } from "./sparql.js";
import { story } from "./story.js";
import { tables } from "./tables.js";
import { topology } from "./topology.js";
import { units } from "./units.js";

const content = document.getElementById("content"), crumbs = document.getElementById("crumbs"), alive = document.getElementById("alive");
let leave = () => {}, session = { can_change: false };

function route() {
  leave();
  leave = () => {};
  alive.textContent = "";
  const [key, page, rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  replace(crumbs, key ? tabs(key, page) : []);
  document.title = key ? `${key} - Gossamer` : "Gossamer";
  if (!key) leave = crawls(content, session, (text) => { alive.textContent = text; }, route);
  else if (page === "hosts") leave = hosts(content, key, session, (text) => { alive.textContent = text; });
  else if (page === "host") leave = host(content, key, rest ?? "", session, (text) => { alive.textContent = text; });
  else if (page === "units") leave = units(content, key, (text) => { alive.textContent = text; });
  else if (page === "settings") leave = settings(content, key, rest ?? "", session, (text) => { alive.textContent = text; });
  else if (page === "topology") leave = topology(content, key, session, (text) => { alive.textContent = text; });
  else if (page === "rewire") leave = rewire(content, key, session, (text) => { alive.textContent = text; });
  else if (page === "tables") leave = tables(content, key, session, rest ?? "");
  else if (page === "sparql") leave = sparql(content, key);
  else if (page === "search") leave = search(content, key, rest ?? "");
  else if (page === "log") leave = log(content, key, (text) => { alive.textContent = text; });
  else if (page === "why") leave = story(content, key, rest ?? "");
  else leave = overview(content, key, session, (text) => { alive.textContent = text; });
}

function tabs(key, page) {
  const link = (text, path, isHere) => h("li", {}, h("a", { href: `#/${encodeURIComponent(key)}${path}`, "aria-current": isHere ? "page" : null }, text));
  return h("ul", { class: "tabs" }, link("Overview", "", !page), link("Hosts", "/hosts", page === "hosts" || page === "host"), link("Units", "/units", page === "units"), link("Log", "/log", page === "log"), link("Tables and words", "/tables", ["tables", "sparql", "search"].includes(page)), link("Topology", "/topology", page === "topology"), link("Change the graph", "/rewire", page === "rewire"), link("Settings", "/settings", page === "settings"), link("Why this URL", "/why", page === "why"));
}

addEventListener("hashchange", () => { route(); content.focus(); });
get("session").then((found) => { session = found; }).catch((error) => { alive.textContent = error.message; }).finally(route);

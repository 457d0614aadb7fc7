// The dashboard: which page is shown, by the part of the address after `#`. A page is loaded when it is first shown.
import { get } from "./api.js";
import { h, replace } from "./dom.js";

/** Word in the address -> the module of a page, the function that shows it, and the tab that it belongs to. */
const PAGES = {
  hosts: ["hosts", "hosts"], host: ["host", "host", "hosts"], units: ["units", "units"], log: ["log", "log"],
  tables: ["tables", "tables"], sparql: ["sparql", "sparql", "tables"], search: ["search", "search", "tables"],
  topology: ["topology", "topology"], rewire: ["rewire", "rewire"], settings: ["settings", "settings"], why: ["story", "story"], exports: ["exports", "exports"], page: ["page", "page"], traps: ["traps", "traps"], report: ["tables", "tables", "tables"], ask: ["tables", "tables", "tables"],
};
const TABS = [["Overview", ""], ["Hosts", "hosts"], ["Traps", "traps"], ["Units", "units"], ["Log", "log"], ["Tables and words", "tables"], ["Topology", "topology"],
  ["Change the graph", "rewire"], ["Settings", "settings"], ["Why this URL", "why"], ["Exports", "exports"]];

const content = document.getElementById("content"), crumbs = document.getElementById("crumbs"), alive = document.getElementById("alive");
let leave = () => {}, shown = 0, session = { can_change: false }, added = [];

async function route() {
  leave();
  leave = () => {};
  alive.textContent = "";
  const [key, page, rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent), mine = ++shown;
  const isCrawl = key && key !== "start";
  replace(crumbs, isCrawl ? tabs(key, page, rest) : []);
  document.title = isCrawl ? `${key} - Gossamer` : "Gossamer";
  const [file, name] = !key ? ["crawls", "crawls"] : key === "start" ? ["start", "start"] : PAGES[page] ?? ["overview", "overview"];
  try {
    const module = await import(`./${file}.js`);
    // Another page may have been chosen meanwhile.
    if (mine === shown) leave = module[name](content, { key, page, rest: rest ?? "", session, alive: (text) => { alive.textContent = text; }, enter: route });
  } catch (error) { alive.textContent = error.message; }
}

/** The tabs of a crawl; those of pages that subjects add come last. */
function tabs(key, page, rest) {
  const here = page === "page" ? `page/${encodeURIComponent(rest)}` : PAGES[page]?.[2] ?? (PAGES[page] ? page : "");
  return h("ul", { class: "tabs" }, [...TABS, ...added.map(({ title }) => [title, `page/${encodeURIComponent(title)}`])].map(([text, word]) => h("li", {}, h("a", { href: `#/${encodeURIComponent(key)}${word ? `/${word}` : ""}`, "aria-current": word === here ? "page" : null }, text))));
}

addEventListener("hashchange", () => { route(); content.focus(); });
let trouble = "";
const asked = [get("session").then((found) => { session = found; }), get("pages").then((found) => { added = found; })];
Promise.all(asked.map((one) => one.catch((error) => { trouble = error.message; }))).then(route).then(() => { if (trouble) alive.textContent = trouble; });

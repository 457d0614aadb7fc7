// What a crawl has set aside since it looks like a trap: why, with examples, and a person's word for it.
import { get, order } from "./api.js";
import { h, replace, table } from "./dom.js";
import { count, many } from "./words.js";

const REFRESH = 5_000;

export function traps(parent, { key, session, alive }) {
  let drawn = "", isLeft = false, timer = 0;
  const said = h("p", { role: "status", "aria-live": "polite" }), found = h("div"), base = `crawls/${encodeURIComponent(key)}`;
  const decide = async (fields) => {
    said.className = "";
    said.textContent = "...";
    try { said.textContent = (await order(key, "decide", fields)).done; await look(); }
    catch (error) { said.className = "trouble"; said.textContent = error.message; }
  };
  const look = async () => {
    clearTimeout(timer);
    try {
      const told = await get(`${base}/traps`);
      if (isLeft) return;
      alive(`as of ${new Date().toLocaleTimeString()}`);
      // What a person reads stays as long as it is true.
      if (JSON.stringify(told) !== drawn) { drawn = JSON.stringify(told); replace(found, families(told, key, session, decide), hosts(told, key)); }
    } catch (error) { alive(error.message); }
    if (!isLeft) timer = setTimeout(look, REFRESH);
  };
  replace(parent, h("h2", {}, "Traps"), h("p", {}, "URLs that look like parts of a trap wait behind everything else. Some of them are fetched to see whether there is anything new; news releases all of them."), said, found);
  look();
  return () => { isLeft = true; clearTimeout(timer); };
}

function families(told, key, session, decide) {
  if (!told.families.length) return h("p", {}, "Nothing is set aside.");
  const link = (url) => h("li", {}, h("a", { href: `#/${encodeURIComponent(key)}/why/${encodeURIComponent(url)}` }, url));
  const button = (one, word, state, text) => (one.state === state ? null : h("button", { id: `${word}-${one.id}`, "aria-label": `${text}: ${one.family}`, onclick: () => decide({ [word]: [one.id] }) }, text));
  return table("Families that are set aside", [
    ["family", (one) => [h("strong", {}, one.family), h("div", { class: "faint" }, one.trap.replace("trap:", ""))]], ["state", (one) => one.state],
    ["set aside", (one) => count(one.set_aside), true], ["tried", (one) => count(one.probes), true], ["why", (one) => one.evidence, "prose"],
    ["examples", (one) => h("ul", { class: "plain" }, one.samples.map(link)), "prose"],
    ...(session.can_change ? [["decide", (one) => h("div", { class: "actions" }, button(one, "release", "released", "Fetch them"), button(one, "confirm", "confirmed", "It is a trap"))]] : []),
  ], told.families);
}

function hosts(told, key) {
  return told.hosts.length ? [h("h3", {}, "Hosts with unusually many URLs"), h("ul", {}, told.hosts.map((one) => h("li", {}, h("a", { href: `#/${encodeURIComponent(key)}/host/${encodeURIComponent(one.host)}` }, one.host), `: ${many(one.urls, "URL")}, ${many(one.pages, "page")}`)))] : null;
}

// One host: how it stands and why, its robots.txt, its errors, the head of its queue, and what a person can change.
import { get, order } from "./api.js";
import { card, h, replace, table, terms } from "./dom.js";
import { DELAYS, WAITS, count, many, ranked, seconds, stamp } from "./words.js";

const REFRESH = 5_000;
const SETTINGS = [["delay", "Delay", "seconds, or auto"], ["per_host", "Requests at once", "a number"], ["max_pages", "Budget", "the most URLs in its queue"]];

export function host(parent, { key, rest: name, session, alive }) {
  const head = h("div"), body = h("div", { class: "grid" }), rules = h("div", { class: "grid" }), said = h("p", { role: "status", "aria-live": "polite" });
  const controls = h("div");
  let drawn = "", read = "";
  const show = async () => {
    try {
      const told = await get(`crawls/${encodeURIComponent(key)}/host?name=${encodeURIComponent(name)}`);
      alive(`as of ${new Date().toLocaleTimeString()}`);
      const known = told.known, text = JSON.stringify([known.given, known.blocked_by]);
      replace(head, h("h2", {}, known.host), h("p", {}, h("strong", {}, standing(known))));
      // What a person is typing stays.
      if (session.can_change && text !== drawn) { drawn = text; replace(controls, forms(key, known, said, show)); }
      replace(body, sections(key, known, told.errors));
      // A list that a person has opened stays open.
      if (read !== JSON.stringify(told.robots)) { read = JSON.stringify(told.robots); replace(rules, told.robots.map(robots)); }
    } catch (error) { replace(head, h("h2", {}, name), h("p", { class: "trouble" }, error.message)); }
  };
  replace(parent, head, controls, said, body, rules);
  show();
  const timer = setInterval(show, REFRESH);
  return () => clearInterval(timer);
}

function standing(known) {
  if (known.blocked_by) return `blocked${known.blocked_by === known.host ? "" : `, with ${known.blocked_by}`}`;
  if (!known.state.first_seen && !known.queued) return "The crawl has sent this host no request.";
  if (known.held_by) return `waits until ${stamp(known.until)}: ${WAITS[known.held_by] ?? `its usual delay, because of ${DELAYS[known.held_by] ?? known.held_by}`}`;
  return known.queued ? "is asked when its turn comes" : "has nothing in its queue";
}

function forms(key, known, said, show) {
  const act = async (word, fields) => {
    said.className = "";
    said.textContent = "...";
    try { said.textContent = (await order(key, word, fields)).done; await show(); }
    catch (error) { said.className = "trouble"; said.textContent = error.message; }
  };
  const change = SETTINGS.map(([option, title, hint]) => h("form", { onsubmit: (event) => {
    event.preventDefault();
    act("set-host", { name: known.host, values: { [option]: event.target.elements.value.value.trim() || "none" } });
  } },
    h("label", { for: `set-${option}` }, title), h("input", { id: `set-${option}`, name: "value", value: known.given[option] ?? "", placeholder: `as for all hosts; ${hint}`, autocomplete: "off" }),
    h("button", { id: `do-${option}` }, "Change")));
  const block = known.blocked_by ? null : h("button", { id: "do-block", onclick: () => {
    if (confirm(`Send no more requests to ${known.host}?`)) act("block", { names: [known.host] });
  } }, "Block this host");
  return h("section", { class: "card" }, h("h3", {}, "For this host"), change, h("div", { class: "actions" }, block));
}

function sections(key, known, errors) {
  const state = known.state;
  const link = (url) => h("a", { href: `#/${encodeURIComponent(key)}/why/${encodeURIComponent(url)}` }, url);
  return [
    card("State", terms([
      ["delay", state.delay ? seconds(state.delay) : ""], ["because of", state.delay ? DELAYS[state.delay_reason] ?? state.delay_reason : ""],
      ["robots.txt", state.robots_state], ["read at", state.robots_date ? stamp(state.robots_date) : ""], ["address", state.address],
      ["asked first at", state.first_seen ? stamp(state.first_seen) : ""], ["asked last at", state.last_seen ? stamp(state.last_seen) : ""],
      ...ranked(state.counters).map(([name, number]) => [name, count(number)]),
    ])),
    card(`Outcomes${known.is_part ? " of some of its URLs" : ""}`, terms(ranked(known.outcomes).map(([name, number]) => [name.replaceAll("_", " "), count(number)]))),
    h("section", { class: "card wide", id: "failed" }, h("h3", {}, "Errors"), errors.length
      ? table("Errors", [["URL", (one) => link(one.url)], ["outcome", (one) => one.outcome.replaceAll("_", " ")], ["status", (one) => one.status || "", true], ["at", (one) => stamp(one.fetched_at)], ["what went wrong", (one) => one.error]], errors)
      : h("p", {}, "None.")),
    h("section", { class: "card wide", id: "queue" }, h("h3", {}, `The queue: ${known.is_more ? "more than " : ""}${many(known.queued, "URL")}`), known.head.length
      ? table("The head of the queue", [["URL", (one) => link(one.url)], ["depth", (one) => one.depth, true], ["attempt", (one) => one.attempt, true], ["found on", (one) => (one.source ? link(one.source) : one.relation)]], known.head)
      : h("p", {}, "Empty.")),
    known.later.length ? h("section", { class: "card wide", id: "later" }, h("h3", {}, "Tried again"),
      table("Tried again", [["URL", (one) => link(one.url)], ["attempt", (one) => one.attempt, true], ["at", (one) => stamp(one.due)]], known.later)) : null,
  ];
}

function robots(one, number) {
  return h("section", { class: "card wide" }, h("h3", {}, one.url), one.versions.length && one.versions[0].status !== "200" ? h("p", {}, `The last answer had status ${one.versions[0].status}: it holds no rules.`) : null,
    one.text ? h("pre", { tabindex: "0", role: "region", "aria-label": one.url }, one.text) : h("p", { class: "faint" }, "It holds nothing, or was never there."),
    h("details", { id: `versions-${number}` }, h("summary", {}, many(one.versions.length, "answer")),
      table("Versions", [["fetched", (version) => version.at.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/, "$1-$2-$3 $4:$5:$6 UTC")], ["status", (version) => version.status], ["", (version) => (version.is_changed ? "changed" : "as before")]], one.versions)));
}

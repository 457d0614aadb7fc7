// Words in the documents of a crawl: what `gossamer search` finds, with filters to click and pages to turn.
import { get } from "./api.js";
import { answerable, kinds } from "./questions.js";
import { h, replace } from "./dom.js";
import { count, many } from "./words.js";

const SHOWN = 20, FILTERS = ["host", "language", "type"];

export function search(parent, { key, rest: words }) {
  const said = h("p", { role: "status", "aria-live": "polite" }), chosen = h("p", { class: "actions" }), found = h("div");
  const field = h("input", { id: "words", type: "search", value: words, autocomplete: "off", spellcheck: "false", placeholder: "breadth \"first search\" title:web" });
  const filters = [];
  let asked = "", isLeft = false;
  const tell = (text, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = text; };
  const show = async (start = 0) => {
    tell("...");
    const query = new URLSearchParams([["words", asked], ["start", start], ["limit", SHOWN], ...filters]);
    try {
      const answer = await get(`crawls/${encodeURIComponent(key)}/search?${query}`);
      if (isLeft) return;
      tell(many(answer.total, "document"));
      replace(found, h("ol", { class: "found", start: start + 1 }, answer.hits.map((one) => hit(key, one))), turn(answer, start), counted(answer.facets));
    } catch (error) { replace(found); tell(error.message, true); }
  };
  const turn = (answer, start) => h("p", { class: "actions" },
    start ? h("button", { id: "before", type: "button", onclick: () => show(Math.max(0, start - SHOWN)) }, "Before") : null,
    start + answer.hits.length < answer.total ? h("button", { id: "further", type: "button", onclick: () => show(start + SHOWN) }, "Further") : null);
  const counted = (facets) => h("div", { class: "grid" }, Object.entries(facets).filter(([, values]) => Object.keys(values).length).map(([name, values]) =>
    h("section", { class: "card" }, h("h3", {}, `By ${name}`), h("ul", { class: "plain" }, Object.entries(values).map(([value, number]) => h("li", {},
      FILTERS.includes(name) && value !== "unknown" ? h("button", { type: "button", class: "link", onclick: () => { filter(name, value); } }, value) : value, ` ${count(number)}`))))));
  const filter = (name, value) => {
    if (!filters.some(([of, one]) => of === name && one === value)) filters.push([name, value]);
    draw();
    show();
    field.focus();
  };
  const draw = () => replace(chosen, filters.map(([name, value], index) => h("button", { type: "button", "aria-label": `Leave out the filter ${name} ${value}`, onclick: () => { filters.splice(index, 1); draw(); show(); field.focus(); } }, `${name}: ${value} \u00d7`)));
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); asked = field.value.trim(); show(); } }, h("label", { for: "words" }, "Words"), field, h("button", { id: "search" }, "Search"));
  replace(parent, h("h2", {}, "Search"), kinds(key, "search"), form, chosen, said, found);
  answerable(key, "search", form, tell).then((can) => { if (can && words && !isLeft) { asked = words; show(); } });
  return () => { isLeft = true; };
}

function hit(key, one) {
  return h("li", {}, h("a", { href: `#/${encodeURIComponent(key)}/why/${encodeURIComponent(one.url)}` }, one.title || one.url), h("div", { class: "faint" }, one.url),
    h("div", {}, marked(one)), h("div", { class: "faint" }, [one.language, one.fetched_at.slice(0, 10), `depth ${one.depth}`].filter(Boolean).join(" \u00b7 ")));
}

/** The snippet with what was looked for marked; places are counted in characters, which a string of JavaScript does not do. */
function marked(one) {
  const letters = Array.from(one.snippet), parts = [];
  let last = 0;
  for (const [start, end] of one.marks) {
    parts.push(letters.slice(last, start).join(""), h("mark", {}, letters.slice(start, end).join("")));
    last = end;
  }
  return [...parts, letters.slice(last).join("")];
}

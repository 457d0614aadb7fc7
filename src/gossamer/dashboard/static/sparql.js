// Questions in SPARQL to the triples of a crawl: rows as a table, a graph as Turtle.
import { get } from "./api.js";
import { answerable, kinds } from "./questions.js";
import { h, replace, table } from "./dom.js";
import { count, many } from "./words.js";

const FIRST = "SELECT ?type (count(*) AS ?things) { ?thing a ?type } GROUP BY ?type ORDER BY DESC(?things)";

export function sparql(parent, { key }) {
  const said = h("p", { role: "status", "aria-live": "polite" }), found = h("div"), text = h("textarea", { id: "sparql", rows: 5, spellcheck: "false" }, FIRST);
  let isLeft = false;
  const tell = (words, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = words; };
  const show = async () => {
    tell("...");
    try {
      const answer = await get(`crawls/${encodeURIComponent(key)}/sparql?${new URLSearchParams({ query: text.value })}`);
      if (isLeft) return;
      tell("");
      replace(found, answer.columns.length ? rows(answer) : graph(answer));
    } catch (error) { replace(found); tell(error.message, true); }
  };
  const form = h("form", { class: "rows", onsubmit: (event) => { event.preventDefault(); show(); } }, h("label", { for: "sparql" }, "SPARQL"), text, h("span"), h("div", { class: "actions" }, h("button", { id: "ask-sparql" }, "Ask"),
    h("span", { class: "faint" }, "Every page has a graph, named by its URL. The prefixes of RDFa, such as schema and foaf, need no PREFIX. An answer takes half a minute at most.")));
  replace(parent, h("h2", {}, "SPARQL"), kinds(key, "sparql"), form, said, found);
  answerable(key, "sparql", form, tell);
  return () => { isLeft = true; };
}

function rows(answer) {
  const columns = answer.columns.map((title, index) => [title, (row) => row[index]]);
  return [answer.rows.length ? table("Answer", columns, answer.rows) : h("p", {}, "None."),
    h("p", { class: "faint" }, answer.is_more ? `The first ${count(answer.rows.length)} rows; there are more.` : many(answer.rows.length, "row"))];
}

function graph(answer) {
  return [h("pre", { tabindex: "0", role: "region", "aria-label": "The graph as Turtle" }, answer.graph || "# no triples"),
    answer.is_more ? h("p", { class: "faint" }, `The first ${count(answer.graph.length)} characters; there are more.`) : null];
}

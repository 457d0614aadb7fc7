// Exports of a crawl: what `gossamer export` writes, made by a click and downloaded.
import { get, order } from "./api.js";
import { h, replace, table } from "./dom.js";
import { bytes, stamp } from "./words.js";

const REFRESH = 2_000, OF_TABLES = ["csv", "jsonl", "parquet"];
const WORDS = {
  wacz: "WACZ: archive, index and pages in one file", csv: "CSV: a table", jsonl: "JSON Lines: a table", parquet: "Parquet: a table", cdxj: "CDXJ: the index of the archive",
  urls: "URLs, one a line", folder: "a folder: a copy to browse", nquads: "N-Quads: the triples", turtle: "Turtle: the triples", jsonld: "JSON-LD: the triples", rdfxml: "RDF/XML: the triples",
};

export function exports(parent, { key, session, alive }) {
  let drawn = "", isLeft = false, timer = 0;
  const said = h("p", { role: "status", "aria-live": "polite" }), form = h("div"), found = h("div"), base = `crawls/${encodeURIComponent(key)}`;
  const tell = (text, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = text; };
  const act = async (word, fields, done) => {
    tell("...");
    try { draw(await order(key, word, fields)); tell(done); } catch (error) { tell(error.message, true); }
  };
  const draw = (told) => {
    if (!form.firstChild && session.can_change) replace(form, formOf(told, act));
    if (JSON.stringify(told.exports) === drawn) return;
    drawn = JSON.stringify(told.exports);
    replace(found, told.exports.length ? table("Exports", [
      ["export", (one) => (one.state === "ready" && !one.is_folder ? h("a", { id: `get-${one.name}`, href: `/api/${base}/exports/${encodeURIComponent(one.name)}`, download: one.name }, one.name) : one.name)],
      ["state", (one) => [one.state, one.said ? `: ${one.said}` : ""]], ["size", (one) => (one.is_folder ? "" : bytes(one.bytes)), true], ["made", (one) => stamp(one.made_at)],
      ...(session.can_change ? [["", (one) => (one.is_folder ? "" : h("button", { id: `remove-${one.name}`, "aria-label": `Remove ${one.name}`, onclick: () => act("remove-export", { name: one.name }, `${one.name} is removed.`) }, "Remove"))]] : []),
    ], told.exports) : h("p", {}, "There are no exports yet."), h("p", { class: "faint" }, `Exports lie in ${told.folder}. They keep documents that are deleted from the crawl.`));
  };
  const look = async () => {
    try {
      const told = await get(`${base}/exports`);
      if (isLeft) return;
      alive(`as of ${new Date().toLocaleTimeString()}`);
      draw(told);
    } catch (error) { alive(error.message); }
    if (!isLeft) timer = setTimeout(look, REFRESH);
  };
  replace(parent, h("h2", {}, "Exports"), form, said, found);
  look();
  return () => { isLeft = true; clearTimeout(timer); };
}

function formOf(told, act) {
  const tables = h("input", { id: "export-table", list: "tables", value: "pages", autocomplete: "off", spellcheck: "false" }), which = h("span", { class: "actions", hidden: true }, h("label", { for: "export-table" }, "Table"), tables, h("datalist", { id: "tables" }, told.tables.map((one) => h("option", { value: one }))));
  const to = h("select", { id: "export-to", onchange: () => { which.hidden = !OF_TABLES.includes(to.value); } }, told.forms.map((one) => h("option", { value: one }, WORDS[one] ?? one)));
  return h("form", { onsubmit: (event) => {
    event.preventDefault();
    act("exports", { to: to.value, ...(OF_TABLES.includes(to.value) ? { table: tables.value.trim() } : {}) }, "The export is being made.");
  } }, h("label", { for: "export-to" }, "Export to"), to, which, h("button", { id: "do-export" }, "Export"));
}

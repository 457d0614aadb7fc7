// A new crawl by a form, which is made of the options of `gossamer crawl`. The command says what is wrong with it.
import { ask, get } from "./api.js";
import { h, replace } from "./dom.js";
import { many, prose } from "./words.js";

/** The options that most crawls set; all others stand below them. */
const USUAL = ["contact", "scope", "depth", "max_pages", "max_time", "delay", "concurrency", "rate"];

export function start(parent, { session }) {
  const said = h("p", { role: "status", "aria-live": "polite" }), place = h("div"), command = h("pre", { tabindex: "0", role: "region", "aria-label": "The command that does the same", hidden: true });
  const tell = (text, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = text; };
  replace(parent, h("p", {}, h("a", { href: "#/" }, "All crawls")), h("h2", {}, "Start a crawl"), place, said, command);
  const load = async () => {
    if (!session.can_change) { tell("Your token may only read."); return; }
    try {
      const form = await get("options");
      if (form.folders.length) replace(place, formOf(form, send));
      else tell("This dashboard shows single crawls. Start it with a folder to start crawls there: gossamer dashboard FOLDER");
    } catch (error) { tell(error.message, true); }
  };
  const send = async (form, button) => {
    tell("...");
    command.hidden = true;
    button.disabled = true;
    try {
      const told = await ask("crawls", form);
      tell("");
      replace(said, `${told.done}. `, h("a", { id: "started", href: `#/${encodeURIComponent(told.key)}` }, "Show it"));
      replace(command, told.command);
      command.hidden = false;
    } catch (error) { tell(error.message, true); }
    button.disabled = false;
  };
  load();
  return () => {};
}

function formOf(form, send) {
  const options = new Map(form.options.map((one) => [one.name, one])), rest = form.options.filter((one) => !USUAL.includes(one.name));
  const fields = new Map(form.options.map((one) => [one.name, field(one)]));
  const seeds = h("textarea", { id: "seeds", rows: 3, required: true, spellcheck: "false", placeholder: "https://example.org/" });
  const folder = h("select", { id: "folder" }, form.folders.map((one) => h("option", {}, one))), name = h("input", { id: "crawl-name", autocomplete: "off", spellcheck: "false", placeholder: "crawl-HOST-DATE" });
  const button = h("button", { id: "do-start" }, "Start");
  const row = (one) => [h("label", { for: `option-${one.name}` }, one.name.replaceAll("_", " ")), h("div", {}, fields.get(one.name), h("div", { id: `about-${one.name}`, class: "faint" }, about(one)))];
  const rows = rest.map((one) => h("div", { class: "rows" }, row(one)));
  const filter = h("input", { id: "find-option", autocomplete: "off", spellcheck: "false", oninput: (event) => {
    const text = event.target.value.trim().toLowerCase();
    rest.forEach((one, index) => { rows[index].hidden = !`${one.name} ${one.doc}`.toLowerCase().includes(text); });
  } });
  return h("form", { class: "start", onsubmit: (event) => {
    event.preventDefault();
    const given = {};
    for (const [key, element] of fields) { const value = filled(options.get(key), element); if (value !== null) given[key] = value; }
    send({ folder: folder.value, name: name.value.trim(), seeds: lines(seeds.value), options: given }, button);
  } },
    h("div", { class: "rows" }, h("label", { for: "seeds" }, "seeds"), h("div", {}, seeds, h("div", { class: "faint" }, "Begin at these URLs, one a line.")),
      h("label", { for: "folder" }, "folder"), folder, h("label", { for: "crawl-name" }, "name"), h("div", {}, name, h("div", { class: "faint" }, "Name its directory; one that exists is refused."))),
    USUAL.filter((one) => options.has(one)).map((one) => h("div", { class: "rows" }, row(options.get(one)))),
    h("details", {}, h("summary", {}, many(rest.length, "further option")), h("p", {}, h("label", { for: "find-option" }, "Only "), filter), rows),
    h("p", { class: "faint" }, "Options that name files, code or secrets of this machine are for the command line."), h("div", { class: "actions" }, button));
}

function about(one) {
  const isPlain = one.kind === "a text" || one.kind === "true or false" || one.kind === one.words.join(" or ");
  const takes = [one.is_many ? "one a line" : one.kind, one.unit ? `(${one.unit})` : "", one.bounds].filter(Boolean).join(" ");
  return prose(one.doc) + (isPlain ? "" : one.is_many ? ` Write ${takes}.` : ` It takes ${takes}.`);
}

/** What a person fills in: empty for the default, which stands there in grey. */
function field(one) {
  const common = { id: `option-${one.name}`, "aria-describedby": `about-${one.name}` }, usual = one.default === null || one.default === "" ? "" : String(one.default);
  if (one.kind === "true or false") return h("input", { ...common, type: "checkbox" });
  if (one.is_many) return h("textarea", { ...common, rows: 1, spellcheck: "false" });
  if (one.words.length && one.kind === one.words.join(" or ")) return h("select", common, h("option", { value: "" }, `${usual} (usual)`), one.words.filter((word) => word !== usual).map((word) => h("option", {}, word)));
  return h("input", { ...common, placeholder: usual, autocomplete: "off", spellcheck: "false" });
}

/** The value of a field; null where it is left as it was. */
function filled(one, element) {
  if (one.kind === "true or false") return element.checked ? true : null;
  const text = element.value.trim();
  if (!text) return null;
  return one.is_many ? lines(text) : text;
}

const lines = (text) => text.split("\n").map((one) => one.trim()).filter(Boolean);

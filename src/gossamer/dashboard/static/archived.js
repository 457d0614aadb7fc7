// The archived document of a URL: its text, its source, header fields and record. All of it is shown as text.
import { get } from "./api.js";
import { h, replace, terms } from "./dom.js";
import { count } from "./words.js";

const VIEWS = [["text", "Text"], ["source", "Source"], ["head", "Headers"], ["record", "Record"]];

export function archived(key, url) {
  const found = h("div", { "aria-live": "polite" });
  const open = h("button", { id: "archived", onclick: () => show(found, key, url, "", "text") }, "Show the archived document");
  return h("section", { class: "archived" }, h("div", { class: "actions" }, open), found);
}

async function show(found, key, url, at, view) {
  try {
    const query = new URLSearchParams({ url, at });
    const told = await get(`crawls/${encodeURIComponent(key)}/document?${query}`);
    draw(found, key, told, view);
  } catch (error) { replace(found, h("p", { class: "trouble" }, error.message)); }
}

function draw(found, key, told, view) {
  const buttons = VIEWS.map(([name, text]) => h("button", { id: `view-${name}`, "aria-pressed": String(name === view), onclick: () => draw(found, key, told, name) }, text));
  // What is shown may be an older version than was asked for: an answer of a failing server takes no place of a document.
  const shown = told.at.replace(/\D/g, "").slice(0, 14);
  const versions = h("select", { id: "version", onchange: (event) => show(found, key, told.url, event.target.value, view) },
    told.versions.map((one) => h("option", { value: one, selected: one === shown }, dated(one))));
  const replay = `/api/crawls/${encodeURIComponent(key)}/replay?${new URLSearchParams({ url: told.url, at: shown })}`;
  replace(found,
    terms([["fetched", told.at], ["type", told.media_type], ["characters", told.charset], ["bytes as they came", count(told.size)], ["trouble", told.trouble]]),
    h("div", { class: "actions" }, buttons, h("label", { for: "version" }, "Version"), versions,
      h("a", { id: "replay", href: replay, target: "_blank", rel: "noopener noreferrer" }, "Replay in a new tab")),
    view === "record" ? terms(Object.entries(told.record)) : written(told, view));
}

function written(told, view) {
  const text = told[view];
  if (!text) return h("p", {}, { text: "It has no text for readers.", source: "It is not text.", head: "It did not come by HTTP." }[view]);
  const name = VIEWS.find(([one]) => one === view)[1];
  return [h("pre", { tabindex: "0", role: "region", "aria-label": name }, text), told.is_cut && view !== "head" ? h("p", { class: "faint" }, "Only the beginning is shown; gossamer cat writes all of it.") : null];
}

function dated(digits) {
  return digits.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/, "$1-$2-$3 $4:$5:$6 UTC");
}

// The story of one URL: what `gossamer why` tells.
import { get } from "./api.js";
import { archived } from "./archived.js";
import { h, replace } from "./dom.js";

export function story(parent, key, url) {
  const found = h("div", { "aria-live": "polite" });
  const field = h("input", { name: "url", id: "url", type: "text", value: url, required: true, autocomplete: "off", spellcheck: "false" });
  const form = h("form", { onsubmit: (event) => {
    event.preventDefault();
    location.hash = `#/${encodeURIComponent(key)}/why/${encodeURIComponent(field.value.trim())}`;
  } }, h("label", { for: "url" }, "Why, or why not, this URL?"), field, h("button", { id: "ask" }, "Tell"));
  replace(parent, h("h2", {}, "A URL's story"), form, found);
  if (url) tell(found, key, url);
  return () => {};
}

async function tell(found, key, url) {
  replace(found, h("p", {}, "..."));
  try {
    const told = await get(`crawls/${encodeURIComponent(key)}/story?url=${encodeURIComponent(url)}`);
    replace(found, h("h3", {}, told.url), h("p", {}, h("strong", {}, told.told)), filters(told.filters), value(told, ["url", "told", "filters"]), archived(key, told.url));
  } catch (error) { replace(found, h("p", { class: "trouble" }, error.message)); }
}

function filters(given) {
  return h("ul", {}, given.map((one) => h("li", {}, `${one.filter} (${one.gate}): ${one.verdict || "passes"}`)));
}

/** Any value: objects as terms, lists as lists, the rest as text. */
function value(given, without = []) {
  if (given === null || given === undefined || given === "") return null;
  if (Array.isArray(given)) return given.length ? h("ul", {}, given.map((one) => h("li", {}, value(one)))) : null;
  if (typeof given !== "object") return String(given);
  const pairs = Object.entries(given).filter(([name]) => !without.includes(name)).map(([name, one]) => [name.replaceAll("_", " "), value(one)]);
  return h("dl", {}, pairs.filter(([, one]) => one !== null).map(([name, one]) => [h("dt", {}, name), h("dd", {}, one)]));
}

// The story of one URL: what `gossamer why` tells.
import { get } from "./api.js";
import { archived } from "./archived.js";
import { h, replace } from "./dom.js";
import { bytes, many, moment, seconds } from "./words.js";

export function story(parent, { key, rest: url }) {
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
    replace(found, h("h3", {}, told.url), h("p", {}, h("strong", {}, told.told)), timeline(key, told),
      h("details", {}, h("summary", {}, "All that is known"), filters(told.filters), value(told, ["url", "told", "filters"])), archived(key, told.url));
  } catch (error) { replace(found, h("p", { class: "trouble" }, error.message)); }
}

/** What happened to it, in order: how it was found, what the rules said, and every visit. */
function timeline(key, told) {
  const link = (url) => h("a", { href: `#/${encodeURIComponent(key)}/why/${encodeURIComponent(url)}` }, url);
  const step = (when, ...words) => h("li", {}, h("span", { class: "faint" }, when), h("span", {}, words));
  const refused = told.filters.filter((one) => one.verdict);
  return h("ol", { class: "timeline" },
    told.discovered_from ? step("found", "on ", link(told.discovered_from), told.relation ? ` (${told.relation})` : "", told.depth === null ? "" : `, ${many(told.depth, "link")} from the seeds`) : null,
    refused.length ? refused.map((one) => step("refused", `${one.filter} (${one.gate}): ${one.verdict}`)) : told.filters.length ? step("judged", `${many(told.filters.length, "filter")} let it pass`) : null,
    told.blocked_by ? step("blocked", `by ${told.blocked_by}`) : null,
    told.robots ? step("robots.txt", told.robots.ruling, told.robots.rule ? `: ${told.robots.rule}` : "", told.robots.line ? `, line ${told.robots.line}` : "") : null,
    told.visits.map((one) => step(moment(one.fetched_at), [String(one.outcome ?? "").replaceAll("_", " "), one.status ? `status ${one.status}` : "", one.bytes ? bytes(one.bytes) : "",
      one.elapsed_ms ? `in ${seconds(one.elapsed_ms / 1000)}` : "", one.attempt > 1 ? `try ${one.attempt}` : "", one.error ?? ""].filter(Boolean).join(", "))),
    told.redirects.map((url) => step("leads to", link(url))),
    told.duplicate_of ? step("same as", link(told.duplicate_of)) : null,
    told.near_duplicate_of ? step("nearly the same as", link(told.near_duplicate_of)) : null);
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

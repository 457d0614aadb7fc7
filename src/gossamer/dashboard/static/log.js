// What the log of a crawl says last, again and again.
import { get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { moment, seconds } from "./words.js";

const REFRESH = 2_000;

export function log(parent, { key, alive }) {
  let now = null, search = "", isLeft = false, timer = 0;
  const found = h("div");
  const draw = () => {
    const rows = now.visits.filter((one) => `${one.url} ${one.outcome} ${one.error}`.toLowerCase().includes(search));
    replace(found, table("Visits", [["at", (one) => moment(one.fetched_at)], ["URL", (one) => h("a", { href: `#/${encodeURIComponent(key)}/why/${encodeURIComponent(one.url)}` }, one.url)], ["outcome", (one) => one.outcome.replaceAll("_", " ")],
      ["status", (one) => one.status || "", true], ["took", (one) => seconds(one.elapsed_ms / 1000), true], ["what went wrong", (one) => one.error]], rows),
    now.said.length ? [h("h3", {}, "What the crawl said"), h("pre", { tabindex: "0", role: "region", "aria-label": "What the crawl said" }, now.said.join("\n"))] : null);
  };
  const look = async () => {
    try {
      const told = await get(`crawls/${encodeURIComponent(key)}/log`);
      if (isLeft) return;
      alive(`as of ${new Date().toLocaleTimeString()}`);
      if (JSON.stringify(told) !== JSON.stringify(now)) { now = told; draw(); }
    } catch (error) { alive(error.message); }
    if (!isLeft) timer = setTimeout(look, REFRESH);
  };
  replace(parent, h("h2", {}, "Log"), h("form", { onsubmit: (event) => event.preventDefault() }, h("label", { for: "in-log" }, "Only"), h("input", { id: "in-log", autocomplete: "off", spellcheck: "false", placeholder: "a part of a URL, an outcome or an error", oninput: (event) => { search = event.target.value.trim().toLowerCase(); if (now) draw(); } })), found);
  look();
  return () => { isLeft = true; clearTimeout(timer); };
}

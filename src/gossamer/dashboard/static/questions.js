// The pages on which a crawl is asked, and which of them it can answer.
import { get } from "./api.js";
import { h } from "./dom.js";

/** Links between them. */
export function kinds(key, here) {
  const link = (text, page) => h("li", {}, h("a", { href: `#/${encodeURIComponent(key)}/${page}`, "aria-current": page === here ? "page" : null }, text));
  return h("nav", { "aria-label": "Ways to ask" }, h("ul", { class: "tabs" }, link("Reports and SQL", "tables"), link("SPARQL", "sparql"), link("Search", "search")));
}

/** Whether a crawl can answer; where it cannot, the form goes and the reason is told. */
export async function answerable(key, kind, form, tell) {
  try {
    const reason = (await get(`crawls/${encodeURIComponent(key)}/answerable`))[kind];
    if (!reason) return true;
    form.remove();
    tell(reason);
  } catch (error) { tell(error.message, true); }
  return false;
}

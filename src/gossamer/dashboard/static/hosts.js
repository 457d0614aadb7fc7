// The hosts of a crawl: searched, sorted, page by page.
import { get, order } from "./api.js";
import { h, replace, table } from "./dom.js";
import { count, seconds } from "./words.js";

const ROWS = 100, REFRESH = 10_000;

export function hosts(parent, key, session, alive) {
  const asked = { search: "", sort: "errors", descending: true, offset: 0 };
  const found = h("div", { "aria-live": "off" }), said = h("p", { role: "status", "aria-live": "polite" });
  const show = async () => {
    const query = new URLSearchParams({ ...asked, descending: asked.descending ? "1" : "0", limit: String(ROWS) });
    try {
      const page = await get(`crawls/${encodeURIComponent(key)}/hosts?${query}`);
      alive(`hosts as of ${new Date(page.made_at).toLocaleTimeString()}`);
      replace(found, rowsOf(page, key, session, said), pagesOf(page, asked, show));
    } catch (error) { replace(found, h("p", { class: "trouble" }, error.message)); }
  };
  const sorts = [["errors", true, "most errors"], ["pages", true, "most pages"], ["delay", true, "longest delay"], ["last_seen", true, "asked last"], ["host", false, "name"]];
  replace(parent, h("h2", {}, "Hosts"),
    h("form", { onsubmit: (event) => { event.preventDefault(); asked.search = event.target.elements.search.value.trim(); asked.offset = 0; show(); } },
      h("label", { for: "search" }, "Name"), h("input", { id: "search", name: "search", autocomplete: "off", spellcheck: "false" }), h("button", { id: "find" }, "Find"),
      h("label", { for: "sort" }, "First"),
      h("select", { id: "sort", onchange: (event) => { [asked.sort, asked.descending] = sorts[Number(event.target.value)]; asked.offset = 0; show(); } },
        sorts.map(([, , text], number) => h("option", { value: number }, text)))),
    said, found);
  show();
  const timer = setInterval(show, REFRESH);
  return () => clearInterval(timer);
}

function rowsOf(page, key, session, said) {
  const columns = [
    ["host", (row) => h("a", { id: `host-${row.host}`, href: `#/${encodeURIComponent(key)}/host/${encodeURIComponent(row.host)}` }, row.host)], ["pages", (row) => count(row.pages), true], ["errors", (row) => count(row.errors), true],
    ["delay", (row) => (row.delay === null ? "" : seconds(row.delay)), true], ["robots.txt", (row) => row.robots_state ?? ""],
    ["address", (row) => row.ip ?? ""], ["last seen", (row) => row.last_seen ?? ""],
  ];
  if (session.can_change) columns.push(["", (row) => h("button", { id: `block-${row.host}`, "aria-label": `Block ${row.host}`, onclick: () => block(key, row.host, said) }, "Block")]);
  return page.rows.length ? table("Hosts", columns, page.rows) : h("p", {}, "None.");
}

function pagesOf(page, asked, show) {
  const go = (text, offset, id) => h("button", { id, disabled: offset < 0 || offset >= page.total, onclick: () => { asked.offset = offset; show(); } }, text);
  const last = Math.min(page.total, asked.offset + ROWS);
  return h("div", { class: "actions" }, go("Before", asked.offset - ROWS, "before"),
    h("span", {}, page.total ? `${count(asked.offset + 1)} to ${count(last)} of ${count(page.total)}` : "0"), go("After", asked.offset + ROWS, "after"));
}

async function block(key, host, said) {
  if (!confirm(`Ask ${host} for nothing any more?`)) return;
  try { said.className = ""; said.textContent = (await order(key, "block", { names: [host] })).done; }
  catch (error) { said.className = "trouble"; said.textContent = error.message; }
}

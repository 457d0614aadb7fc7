// The hosts of a crawl: searched, sorted, page by page.
import { get, order } from "./api.js";
import { h, replace, table } from "./dom.js";
import { DELAYS, WAITS, count, moment, seconds } from "./words.js";

const ROWS = 100, REFRESH = 10_000, SOON = 500;

export function hosts(parent, { key, session, alive }) {
  const asked = { search: "", sort: "errors", descending: true, offset: 0 };
  const found = h("div", { "aria-live": "off" }), said = h("p", { role: "status", "aria-live": "polite" });
  let timer = 0;
  const show = async () => {
    clearTimeout(timer);
    let pause = REFRESH;
    const query = new URLSearchParams({ ...asked, descending: asked.descending ? "1" : "0", limit: String(ROWS), live: "1" });
    try {
      const page = await get(`crawls/${encodeURIComponent(key)}/hosts?${query}`);
      if (timer === null) return;
      if (page.is_being_made) pause = SOON;
      alive(page.made_at ? `hosts as of ${new Date(page.made_at).toLocaleTimeString()}${page.is_being_made ? "; a newer list is being made" : ""}` : "");
      replace(found, page.left_out ? h("p", { class: "trouble" }, `${count(page.left_out)} files cannot be read, and are not counted here; gossamer verify names them.`) : null,
        page.made_at ? [rowsOf(page, key, session, said), pagesOf(page, asked, show)] : h("p", {}, "The list is being made."));
    } catch (error) { replace(found, h("p", { class: "trouble" }, error.message)); }
    if (timer !== null) timer = setTimeout(show, pause);
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
  return () => { clearTimeout(timer); timer = null; };
}

function rowsOf(page, key, session, said) {
  const columns = [
    ["host", (row) => h("a", { id: `host-${row.host}`, href: `#/${encodeURIComponent(key)}/host/${encodeURIComponent(row.host)}` }, row.host)], ["pages", (row) => count(row.pages), true], ["errors", (row) => count(row.errors), true],
    ["delay", (row) => { const delay = page.now[row.host]?.delay ?? row.delay; return delay === null ? "" : seconds(delay); }, true],
    ["now", (row) => state(page.now[row.host])], ["robots.txt", (row) => row.robots_state ?? ""],
    ["address", (row) => row.ip ?? ""], ["last seen", (row) => moment(row.last_seen)],
  ];
  if (session.can_change) columns.push(["change", (row) => h("button", { id: `block-${row.host}`, "aria-label": `Block ${row.host}`, onclick: () => block(key, row.host, said) }, "Block")]);
  return page.rows.length ? table("Hosts", columns, page.rows) : h("p", {}, "None.");
}

/** Why a host of a running crawl is not asked at this moment. */
function state(now) {
  if (!now) return "";
  if (now.blocked_by) return `blocked by ${now.blocked_by}`;
  const until = now.until ? ` until ${new Date(now.until * 1000).toLocaleTimeString()}` : "";
  return now.held_by ? (WAITS[now.held_by] ?? `usual pause, because of ${DELAYS[now.held_by] ?? now.held_by}`) + until : "";
}

function pagesOf(page, asked, show) {
  const go = (text, offset, id) => h("button", { id, disabled: offset < 0 || offset >= page.total, onclick: () => { asked.offset = offset; show(); } }, text);
  const last = Math.min(page.total, asked.offset + ROWS);
  return h("div", { class: "actions" }, go("Before", asked.offset - ROWS, "before"),
    h("span", {}, page.total ? `${count(asked.offset + 1)} to ${count(last)} of ${count(page.total)}` : "0"), go("After", asked.offset + ROWS, "after"));
}

async function block(key, host, said) {
  if (!confirm(`Send no more requests to ${host}?`)) return;
  try { said.className = ""; said.textContent = (await order(key, "block", { names: [host] })).done; }
  catch (error) { said.className = "trouble"; said.textContent = error.message; }
}

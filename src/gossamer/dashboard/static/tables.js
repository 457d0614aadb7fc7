// The tables of a crawl: reports, questions in SQL, questions that were saved, and plots of what comes back.
import { ask, get } from "./api.js";
import { h, replace, s, table } from "./dom.js";
import { plot } from "./plot.js";
import { count, many } from "./words.js";

const BARS = 20, FIRST = "SELECT outcome, count(*) AS visits FROM pages GROUP BY 1 ORDER BY 2 DESC";

export function tables(parent, key, session) {
  const said = h("p", { role: "status", "aria-live": "polite" }), found = h("div"), pick = h("select", { id: "report", onchange: (event) => chosen(event.target.value) });
  const text = h("textarea", { id: "sql", name: "sql", rows: 5, spellcheck: "false" }, FIRST);
  let known = { reports: [], saved: [] }, isLeft = false;
  const tell = (words, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = words; };
  const show = async (query) => {
    tell("...");
    try {
      const answer = await get(`crawls/${encodeURIComponent(key)}/tables?${new URLSearchParams(query)}`);
      if (isLeft) return;
      tell("");
      replace(found, answer.map(section));
    } catch (error) { tell(error.message, true); }
  };
  const chosen = (value) => {
    const [kind, name] = [value.slice(0, 1), value.slice(1)];
    if (kind === "r") show({ report: name });
    if (kind === "s") { text.value = known.saved.find((one) => one.name === name).sql; show({ sql: text.value }); }
  };
  const draw = () => replace(pick, h("option", { value: "" }, "(choose)"), h("optgroup", { label: "Reports" }, known.reports.map((one) => h("option", { value: `r${one.name}` }, `${one.name}: ${one.doc}`))),
    known.saved.length ? h("optgroup", { label: "Saved" }, known.saved.map((one) => h("option", { value: `s${one.name}` }, one.name))) : null);
  const keep = async (saved) => {
    try { known = await ask("reports", { saved }); draw(); tell("The questions are kept."); } catch (error) { tell(error.message, true); }
  };
  const name = h("input", { id: "save-as", autocomplete: "off", placeholder: "a name" });
  replace(parent, h("h2", {}, "Tables"), h("form", { onsubmit: (event) => event.preventDefault() }, h("label", { for: "report" }, "Report"), pick),
    h("form", { class: "rows", onsubmit: (event) => { event.preventDefault(); show({ sql: text.value }); } }, h("label", { for: "sql" }, "SQL"), text, h("span"), h("div", { class: "actions" }, h("button", { id: "ask-sql" }, "Ask"),
      h("span", { class: "faint" }, "It reads the tables of this crawl, for half a minute at most, and shows a thousand rows."))),
    session.can_change ? h("form", { onsubmit: (event) => { event.preventDefault(); const title = name.value.trim(); if (title) keep([...known.saved.filter((one) => one.name !== title), { name: title, sql: text.value }]); } },
      h("label", { for: "save-as" }, "Save this question as"), name, h("button", { id: "save" }, "Save"), h("button", { id: "unsave", type: "button", onclick: () => keep(known.saved.filter((one) => one.name !== name.value.trim())) }, "Forget it")) : null,
    said, found);
  get("reports").then((names) => { known = names; if (!isLeft) draw(); }).catch((error) => tell(error.message, true));
  return () => { isLeft = true; };
}

function section(one) {
  const isNumber = (index) => /INT|DOUBLE|FLOAT|DECIMAL/.test(one.types[index]);
  const columns = one.columns.map((title, index) => [title, (row) => cell(row[index]), isNumber(index)]);
  return h("section", {}, one.title ? h("h3", {}, one.title) : null, picture(one, isNumber),
    one.rows.length ? table(one.title || "Answer", columns, one.rows) : h("p", {}, "None."),
    h("p", { class: "faint" }, one.is_more ? `The first ${count(one.rows.length)} rows; there are more.` : many(one.rows.length, "row")));
}

function cell(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A line over time, or bars, where the answer is of that form. */
function picture(one, isNumber) {
  const value = one.plot ? one.columns.indexOf(one.plot.value) : one.columns.findIndex((_, index) => isNumber(index)), label = one.plot ? one.columns.indexOf(one.plot.label) : one.types.findIndex((type) => /VARCHAR|ENUM/.test(type));
  const time = one.types.findIndex((type) => /TIMESTAMP|DATE/.test(type));
  if (value < 0 || one.rows.length < 2) return null;
  if (time >= 0 && label < 0) {
    const rows = one.rows.filter((row) => row[time] !== null && row[value] !== null).map((row) => [Date.parse(row[time]), Number(row[value])]).sort(([a], [b]) => a - b);
    return plot(one.columns[value], rows.map(([at]) => at), rows.map(([, number]) => number), (number) => number.toLocaleString("en-US"));
  }
  return label >= 0 && (one.plot || one.columns.length <= 3) ? bars(one, label, value) : null;
}

function bars(one, label, value) {
  const rows = one.rows.slice(0, BARS).map((row) => [cell(row[label]), Math.max(0, Number(row[value]) || 0)]), most = Math.max(...rows.map(([, number]) => number)) || 1;
  return s("svg", { class: "bars", viewBox: `0 0 600 ${rows.length * 18}`, role: "img", "aria-label": `${one.columns[value]} by ${one.columns[label]}; the table says the same` },
    rows.map(([text, number], index) => [s("rect", { x: 220, y: index * 18 + 2, width: (number / most) * 300, height: 13 }), s("text", { x: 214, y: index * 18 + 13, class: "label" }, text.length > 32 ? `${text.slice(0, 31)}\u2026` : text), s("text", { x: 226 + (number / most) * 300, y: index * 18 + 13 }, count(number))]));
}

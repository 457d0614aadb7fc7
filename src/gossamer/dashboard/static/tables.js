// The tables of a crawl: reports that ship, questions in SQL, and reports that a person has saved with their plots.
import { ask, get } from "./api.js";
import { cell, chooser, isNumber, picture } from "./answers.js";
import { h, replace, table } from "./dom.js";
import { kinds } from "./questions.js";
import { count, many } from "./words.js";

const FIRST = "SELECT outcome, count(*) AS visits FROM pages GROUP BY 1 ORDER BY 2 DESC";

/** `first` is asked at once: a saved report by its name, or on the pages `report` and `ask` a report that ships, or a question. */
export function tables(parent, { key, page, session, rest: first }) {
  const said = h("p", { role: "status", "aria-live": "polite" }), found = h("div"), pick = h("select", { id: "report", onchange: (event) => chosen(event.target.value) });
  const text = h("textarea", { id: "sql", name: "sql", rows: 5, spellcheck: "false" }, FIRST), name = h("input", { id: "save-as", autocomplete: "off", maxlength: 100, placeholder: "a name" });
  let known = { reports: [], saved: [] }, asked = "", wish = null, isLeft = false;
  const tell = (words, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = words; };
  const show = async (query) => {
    tell("...");
    try {
      const answer = await get(`crawls/${encodeURIComponent(key)}/tables?${new URLSearchParams(query)}`);
      if (isLeft) return;
      tell("");
      replace(found, answer.map((one) => section(one, query.sql ? wish : null, query.sql ? (plot) => { wish = plot; } : null)));
    } catch (error) { replace(found); tell(error.message, true); }
  };
  const askSql = (plot) => {
    [asked, wish] = [text.value, plot];
    show({ sql: asked });
  };
  const again = (one) => {
    [text.value, name.value] = [one.sql, one.name];
    history.replaceState(null, "", `#/${encodeURIComponent(key)}/tables/${encodeURIComponent(one.name)}`);
    askSql(one.plot ?? null);
  };
  const chosen = (value) => {
    if (value.startsWith("r")) show({ report: value.slice(1) });
    if (value.startsWith("s")) again(known.saved.find((one) => one.name === value.slice(1)));
  };
  const draw = () => replace(pick, h("option", { value: "" }, "(choose)"), known.saved.length ? h("optgroup", { label: "Saved" }, known.saved.map((one) => h("option", { value: `s${one.name}` }, one.name))) : null,
    h("optgroup", { label: "Reports" }, known.reports.map((one) => h("option", { value: `r${one.name}` }, `${one.name}: ${one.doc}`))));
  const keep = async (saved, words) => {
    try { known = await ask("reports", { saved }); draw(); tell(words); } catch (error) { tell(error.message, true); }
  };
  const others = () => known.saved.filter((one) => one.name !== name.value.trim());
  const save = (event) => {
    event.preventDefault();
    const title = name.value.trim();
    if (title) keep([...others(), { name: title, sql: text.value, plot: wish }], `The report ${title} is kept.`);
  };
  const forget = () => {
    if (others().length < known.saved.length) keep(others(), `The report ${name.value.trim()} is forgotten.`);
    else tell("There is no saved report of this name.", true);
  };
  replace(parent, h("h2", {}, "Reports and SQL"), kinds(key, "tables"), h("form", { onsubmit: (event) => event.preventDefault() }, h("label", { for: "report" }, "Report"), pick),
    h("form", { class: "rows", onsubmit: (event) => { event.preventDefault(); askSql(text.value === asked ? wish : null); } }, h("label", { for: "sql" }, "SQL"), text, h("span"), h("div", { class: "actions" }, h("button", { id: "ask-sql" }, "Ask"),
      h("span", { class: "faint" }, "It reads the tables of this crawl, for half a minute at most, and shows a thousand rows."))),
    session.can_change ? h("form", { onsubmit: save }, h("label", { for: "save-as" }, "Save question and plot as"), name, h("button", { id: "save" }, "Save"), h("button", { id: "unsave", type: "button", onclick: forget }, "Forget it")) : null,
    said, found);
  get("reports").then((names) => {
    if (isLeft) return;
    known = names;
    draw();
    if (names.trouble) tell(names.trouble, true);
    const one = known.saved.find((saved) => saved.name === first);
    if (first && page === "report") { pick.value = `r${first}`; chosen(pick.value); }
    else if (first && page === "ask") { text.value = first; askSql(null); }
    else if (one) { pick.value = `s${one.name}`; again(one); }
    else if (first) tell(`There is no saved report ${first}.`, true);
  }).catch((error) => tell(error.message, true));
  return () => { isLeft = true; };
}

/** A table with its plot; `wished` takes the plot that a person chooses, where one can be chosen. */
function section(one, wish, wished) {
  const columns = one.columns.map((title, index) => [title, (row) => cell(row[index]), isNumber(one.types[index])]), drawn = h("div");
  const draw = (plot) => replace(drawn, [picture(one, plot)]);
  draw(wish);
  return h("section", {}, one.title ? h("h3", {}, one.title) : null, wished && one.rows.length > 1 ? chooser(one, wish, (plot) => { wished(plot); draw(plot); }) : null, drawn,
    one.rows.length ? table(one.title || "Answer", columns, one.rows) : h("p", {}, "None."),
    h("p", { class: "faint" }, one.is_more ? `The first ${count(one.rows.length)} rows; there are more.` : many(one.rows.length, "row")));
}

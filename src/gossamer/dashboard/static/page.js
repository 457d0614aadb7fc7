// A page that a subject adds, as one of an installed package. All of it is shown as text.
import { get } from "./api.js";
import { cell } from "./answers.js";
import { h, replace, table } from "./dom.js";
import { count, many } from "./words.js";

export function page(parent, { key, rest: title, alive }) {
  const found = h("div", { "aria-live": "polite" }), again = h("button", { id: "again", onclick: () => look() }, "Look again");
  let isLeft = false;
  const look = async () => {
    alive("...");
    try {
      const told = await get(`crawls/${encodeURIComponent(key)}/pages/${encodeURIComponent(title)}`);
      if (isLeft) return;
      replace(found, drawn(told));
      alive(`as of ${new Date().toLocaleTimeString()}`);
    } catch (error) {
      if (isLeft) return;
      replace(found, h("p", { class: "trouble" }, error.message));
      alive("");
    }
  };
  replace(parent, h("div", { class: "actions" }, again), found);
  look();
  return () => { isLeft = true; };
}

function drawn({ text, is_cut: isCut, table: one }) {
  const isNumber = (index) => typeof one.rows[0]?.[index] === "number";
  const columns = one.columns.map((name, index) => [name, (row) => cell(row[index]), isNumber(index)]);
  return [
    h("h2", {}, one.title), text.split(/\n\s*\n/).filter(Boolean).map((part) => h("p", {}, part)), isCut ? h("p", { class: "faint" }, "The text goes on.") : null,
    columns.length ? [one.rows.length ? table(one.title, columns, one.rows) : h("p", {}, "None."),
      h("p", { class: "faint" }, one.is_more ? `The first ${count(one.rows.length)} rows; there are more.` : many(one.rows.length, "row"))] : null,
  ];
}

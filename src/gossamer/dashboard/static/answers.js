// The plot of an answer: that which its form suggests, or the one that a person has chosen.
import { h } from "./dom.js";
import { bars, plot } from "./plot.js";

const BARS = 20, KINDS = [["", "as the answer suggests"], ["line", "a line"], ["bars", "bars"], ["none", "no plot"]];

/** What a column of DuckDB's type holds. */
export const isNumber = (type) => /INT|DOUBLE|FLOAT|DECIMAL/.test(type);
const isTime = (type) => /TIMESTAMP|DATE/.test(type);

/** The form that chooses a plot; `chosen` is told of it, and of null where the answer is to decide. */
export function chooser(one, wish, chosen) {
  const pick = (id, values, value) => h("select", { id, onchange: () => tell() }, values.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  const columns = one.columns.map((name) => [name, name]), usual = suggested(one);
  const kind = pick("plot-kind", KINDS, wish?.kind ?? ""), x = pick("plot-x", columns, wish?.x ?? one.columns[usual?.x ?? 0]);
  const y = pick("plot-y", columns.filter((_, index) => isNumber(one.types[index])), wish?.y ?? one.columns[usual?.y ?? 0]);
  const rest = h("span", { class: "actions" }, h("label", { for: "plot-x" }, "along"), x, h("label", { for: "plot-y" }, "of"), y);
  const tell = () => {
    rest.hidden = !["line", "bars"].includes(kind.value);
    chosen(kind.value ? { kind: kind.value, x: x.value, y: y.value } : null);
  };
  rest.hidden = !["line", "bars"].includes(kind.value);
  return h("form", { onsubmit: (event) => event.preventDefault() }, h("label", { for: "plot-kind" }, "Plot"), kind, rest);
}

/** The plot of an answer; null where it has none. */
export function picture(one, wish) {
  if (one.rows.length < 2 || wish?.kind === "none") return null;
  const made = wish ? { kind: wish.kind, x: one.columns.indexOf(wish.x), y: one.columns.indexOf(wish.y) } : suggested(one);
  if (!made) return null;
  if (made.x < 0 || made.y < 0) return h("p", { class: "faint" }, "The answer has no columns of the names that the plot was made for.");
  return made.kind === "line" ? line(one, made.x, made.y) : bars(`${one.columns[made.y]} by ${one.columns[made.x]}`, one.rows.slice(0, BARS).map((row) => [cell(row[made.x]), Number(row[made.y]) || 0]));
}

/** A line over time, or bars, where the answer is of that form. */
function suggested(one) {
  if (one.plot) return { kind: "bars", x: one.columns.indexOf(one.plot.label), y: one.columns.indexOf(one.plot.value) };
  const y = one.types.findIndex(isNumber), name = one.types.findIndex((type) => /VARCHAR|ENUM/.test(type)), time = one.types.findIndex(isTime);
  if (y < 0) return null;
  if (time >= 0 && name < 0) return { kind: "line", x: time, y };
  return name >= 0 && one.columns.length <= 3 ? { kind: "bars", x: name, y } : null;
}

function line(one, x, y) {
  const at = isTime(one.types[x]) ? Date.parse : Number;
  const rows = one.rows.filter((row) => row[x] !== null && row[y] !== null).map((row) => [at(row[x]), Number(row[y])]).filter(([place, number]) => Number.isFinite(place) && Number.isFinite(number)).sort(([a], [b]) => a - b);
  const written = (number) => number.toLocaleString("en-US");
  return plot(`${one.columns[y]} along ${one.columns[x]}`, rows.map(([place]) => place), rows.map(([, number]) => number), written, isTime(one.types[x]) ? null : written);
}

/** A cell as text. */
export function cell(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

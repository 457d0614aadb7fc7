// Lines and bars as SVG: enough for a glance, and told in words to a person who does not see them.
import { h, s } from "./dom.js";

const WIDTH = 600, HEIGHT = 120;

/**
 * `times` are milliseconds, `values` numbers; `shown` writes one. A gap of ten intervals breaks the line.
 * Where `written` is given, the line goes over any numbers, which it writes, and is never broken.
 */
export function plot(title, times, values, shown, written = null) {
  const most = Math.max(...values, 0), last = values.at(-1) ?? 0;
  const words = `${title}: ${shown(last)} at the end, ${shown(most)} at most`;
  if (times.length < 2) return h("figure", { class: "card" }, h("h3", {}, title), h("p", { class: "faint" }, written ? "A line needs two points." : "No samples yet."));
  const [first, end] = [times[0], times.at(-1)];
  const gap = written ? Infinity : 10 * Math.max((end - first) / times.length, 10_000);
  let path = "";
  for (let i = 0; i < times.length; i++) {
    const x = ((times[i] - first) / (end - first || 1)) * WIDTH;
    const y = HEIGHT - 2 - (most ? values[i] / most : 0) * (HEIGHT - 4);
    path += `${i && times[i] - times[i - 1] <= gap ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
  }
  const isDay = end - first < 86_400_000;
  const clock = written ?? ((time) => (isDay ? new Date(time).toLocaleTimeString() : new Date(time).toLocaleDateString()));
  return h("section", { class: "card" }, h("h3", {}, title),
    s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
      s("path", { d: path })),
    h("div", { class: "range" }, h("span", {}, clock(first)), h("span", {}, `most ${shown(most)}, last ${shown(last)}`), h("span", {}, clock(end))));
}

/** A bar for each of some [name, number]; what is below nothing has none. */
export function bars(title, rows) {
  const most = Math.max(...rows.map(([, number]) => number), 0) || 1;
  return s("svg", { class: "bars", viewBox: `0 0 600 ${rows.length * 18}`, role: "img", "aria-label": `${title}; the table says the same` },
    rows.map(([name, number], index) => {
      const width = (Math.max(0, number) / most) * 300;
      return [s("rect", { x: 220, y: index * 18 + 2, width, height: 13 }), s("text", { x: 214, y: index * 18 + 13, class: "label" }, name.length > 32 ? `${name.slice(0, 31)}\u2026` : name), s("text", { x: 226 + width, y: index * 18 + 13 }, number.toLocaleString("en-US"))];
    }));
}

/** What grew, as a speed: per second between each sample and the one before. */
export function speed(times, values) {
  return values.map((value, i) => (i && times[i] > times[i - 1] ? Math.max(0, (value - values[i - 1]) / ((times[i] - times[i - 1]) / 1000)) : 0));
}

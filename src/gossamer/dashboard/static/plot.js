// A line over time, as SVG: enough for a glance, and told in words for who does not see it.
import { h, s } from "./dom.js";

const WIDTH = 600, HEIGHT = 120;

/** `times` are milliseconds, `values` numbers; `shown` writes one. A gap of ten intervals breaks the line. */
export function plot(title, times, values, shown) {
  const most = Math.max(...values, 0), last = values.at(-1) ?? 0;
  const words = `${title}: ${shown(last)} at the end, ${shown(most)} at most`;
  if (times.length < 2) return h("figure", { class: "card" }, h("h3", {}, title), h("p", { class: "faint" }, "No samples yet."));
  const [first, end] = [times[0], times.at(-1)];
  const gap = 10 * Math.max((end - first) / times.length, 10_000);
  let path = "";
  for (let i = 0; i < times.length; i++) {
    const x = ((times[i] - first) / (end - first || 1)) * WIDTH;
    const y = HEIGHT - 2 - (most ? values[i] / most : 0) * (HEIGHT - 4);
    path += `${i && times[i] - times[i - 1] <= gap ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
  }
  const isDay = end - first < 86_400_000;
  const clock = (time) => (isDay ? new Date(time).toLocaleTimeString() : new Date(time).toLocaleDateString());
  return h("section", { class: "card" }, h("h3", {}, title),
    s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
      s("path", { d: path })),
    h("div", { class: "range" }, h("span", {}, clock(first)), h("span", {}, `most ${shown(most)}, last ${shown(last)}`), h("span", {}, clock(end))));
}

/** What grew, as a speed: per second between each sample and the one before. */
export function speed(times, values) {
  return values.map((value, i) => (i && times[i] > times[i - 1] ? Math.max(0, (value - values[i - 1]) / ((times[i] - times[i - 1]) / 1000)) : 0));
}

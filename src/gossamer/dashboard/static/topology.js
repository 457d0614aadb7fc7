// The graph as a picture: units, what flows between them, and who uses what. The tables below it tell the same.
import { get, order } from "./api.js";
import { instancesOf } from "./agents.js";
import { begin, Forces } from "./forces.js";
import { h, replace, s, table, terms } from "./dom.js";
import { count, many, prose, seconds } from "./words.js";

const REFRESH = 2_000, STEP = 20, RADIUS = 16, SMALLEST = 0.2, LARGEST = 4;

export function topology(parent, { key, session, alive }) {
  const base = `crawls/${encodeURIComponent(key)}`;
  let picture = null, isLeft = false, timer = 0;
  const canvas = h("div", { class: "canvas" }), told = h("div", { "aria-live": "polite" }), tables = h("div");
  const said = h("p", { role: "status", "aria-live": "polite" });
  const bar = h("div", { class: "actions" });
  replace(parent, h("h2", {}, "Topology"), bar, said, canvas, told, tables);
  const load = async () => {
    try {
      const [graph, layout] = await Promise.all([get(`${base}/graph`), get(`${base}/layout`)]);
      if (isLeft) return;
      picture = new Picture(key, graph, layout, canvas, told);
      replace(bar, tools(key, picture, session, said));
      await look();
    } catch (error) { replace(canvas, h("p", { class: "trouble" }, error.message)); }
  };
  const look = async () => {
    try {
      const now = await get(`${base}?units=1`);
      if (isLeft) return;
      alive(now.process ? `as of ${new Date().toLocaleTimeString()}` : "The crawl rests: nothing flows.");
      picture.tell(now);
      replace(tables, tablesOf(picture));
    } catch (error) { alive(error.message); }
    if (!isLeft) timer = setTimeout(look, REFRESH);
  };
  load();
  return () => { isLeft = true; clearTimeout(timer); picture?.stop(); };
}

function tools(key, picture, session, said) {
  const still = h("button", { id: "still", "aria-pressed": String(picture.isStill), onclick: () => {
    picture.settle(!picture.isStill);
    still.setAttribute("aria-pressed", String(picture.isStill));
  } }, "Stand still");
  const keep = async () => {
    try { await order(key, "layout", picture.layout()); said.className = ""; said.textContent = "The layout is kept."; }
    catch (error) { said.className = "trouble"; said.textContent = error.message; }
  };
  return [
    h("form", { onsubmit: (event) => { event.preventDefault(); picture.find(field.value.trim().toLowerCase(), true); } },
      h("label", { for: "find-unit" }, "Unit"), field = h("input", { id: "find-unit", autocomplete: "off", spellcheck: "false", oninput: (event) => picture.find(event.target.value.trim().toLowerCase()) })),
    still, h("button", { id: "arrange", onclick: () => picture.arrange() }, "Arrange anew"),
    h("button", { id: "nearer", "aria-label": "Nearer", onclick: () => picture.zoom(1.25) }, "+"), h("button", { id: "farther", "aria-label": "Farther", onclick: () => picture.zoom(0.8) }, "\u2212"),
    h("button", { id: "fit", onclick: () => picture.fit() }, "Show all"),
    session.can_change ? h("button", { id: "keep", onclick: keep }, "Keep this layout") : null,
    h("span", { class: "legend" }, [["producer", "gives"], ["filter", "passes on"], ["consumer", "takes"], ["asynchronous", "works by itself"], ["provider", "is used"]].map(([kind, words]) => h("span", { class: `kind ${kind}` }, words))),
  ];
}
let field;

class Picture {
  constructor(key, graph, layout, canvas, told) {
    Object.assign(this, { key, graph, told, chosen: "", isStill: layout.is_still, figures: {}, flows: {}, timer: 0 });
    const places = begin(graph.units, graph.connectors);
    this.nodes = new Map(graph.units.map((unit) => {
      const [x, y] = layout.places[unit.name] ?? places.get(unit.name);
      return [unit.name, { unit, x, y }];
    }));
    this.arrows = graph.connectors.flatMap((one) => one.producers.flatMap((from) => one.consumers.map((to) => ({ connector: one, from: this.nodes.get(from), to: this.nodes.get(to) })))).filter((one) => one.from && one.to);
    this.uses = graph.units.flatMap((unit) => unit.providers.map((name) => ({ from: this.nodes.get(unit.name), to: this.nodes.get(name) }))).filter((one) => one.to);
    const isKept = graph.units.some((unit) => layout.places[unit.name]);
    this.forces = new Forces([...this.nodes.values()], [...this.arrows, ...this.uses].map((one) => [one.from, one.to]));
    if (!isKept) for (let i = 0; i < 150 && !this.forces.isCold; i++) this.forces.step();
    this.draw(canvas);
    this.fit();
    this.forces.heat = isKept ? 0 : 0.2;
    this.run();
  }

  // -- drawing

  draw(canvas) {
    const marker = (id) => s("marker", { id, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, s("path", { d: "M0 0L8 4L0 8z" }));
    for (const one of this.uses) one.line = s("line", { class: "use" });
    for (const one of this.arrows) {
      one.line = s("path", { class: "flow", "marker-end": "url(#arrow)" });
      one.label = s("text", { class: "fill" });
    }
    for (const node of this.nodes.values()) node.shape = this.shapeOf(node);
    this.view = s("g", {}, this.uses.map((one) => one.line), this.arrows.map((one) => [one.line, one.label]), [...this.nodes.values()].map((node) => node.shape));
    this.svg = s("svg", { id: "picture", role: "group", "aria-label": "The graph. Tab goes from unit to unit, arrow keys move one, Enter shows its details." }, s("defs", {}, marker("arrow")), this.view);
    this.svg.addEventListener("pointerdown", (event) => this.grab(event));
    this.svg.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(event.deltaY < 0 ? 1.1 : 0.9); }, { passive: false });
    replace(canvas, this.svg);
    this.place();
  }

  shapeOf(node) {
    const unit = node.unit, number = unit.kind === "provider" ? 1 : unit.instances * Math.max(1, this.graph.agents.length);
    const body = unit.kind === "provider" ? s("rect", { x: -RADIUS, y: -RADIUS * 0.7, width: 2 * RADIUS, height: 1.4 * RADIUS, rx: 4 }) : s("circle", { r: RADIUS });
    const shape = s("g", { class: `node ${unit.kind}`, tabindex: "0", role: "button", "aria-label": `${unit.name}, ${unit.kind}${number > 1 ? `, ${number} instances` : ""}`, "data-name": unit.name },
      body, s("text", { class: "name", y: RADIUS + 13 }, unit.name), number > 1 ? s("text", { class: "many", y: 4 }, `\u00d7${number}`) : null);
    shape.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
      if (step) { event.preventDefault(); node.isHeld = true; node.x += step[0]; node.y += step[1]; this.place(); }
      else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.choose(unit.name); }
    });
    return shape;
  }

  place() {
    for (const { shape, x, y } of this.nodes.values()) shape.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    for (const one of this.uses) for (const [name, value] of Object.entries({ x1: one.from.x, y1: one.from.y, x2: one.to.x, y2: one.to.y })) one.line.setAttribute(name, value.toFixed(1));
    for (const one of this.arrows) {
      const { from, to } = one, x = to.x - from.x, y = to.y - from.y, far = Math.hypot(x, y) || 1, [ux, uy] = [x / far, y / far];
      // A bow to the right of its way, so that arrows there and back are two.
      const mx = (from.x + to.x) / 2 - uy * 0.12 * far, my = (from.y + to.y) / 2 + ux * 0.12 * far;
      one.line.setAttribute("d", `M${(from.x + ux * RADIUS).toFixed(1)} ${(from.y + uy * RADIUS).toFixed(1)}Q${mx.toFixed(1)} ${my.toFixed(1)} ${(to.x - ux * (RADIUS + 3)).toFixed(1)} ${(to.y - uy * (RADIUS + 3)).toFixed(1)}`);
      one.label.setAttribute("x", mx.toFixed(1));
      one.label.setAttribute("y", my.toFixed(1));
    }
  }

  show() { this.svg.setAttribute("viewBox", this.box.map((one) => one.toFixed(1)).join(" ")); }

  fit() {
    const all = [...this.nodes.values()], xs = all.map((one) => one.x), ys = all.map((one) => one.y), edge = 70;
    this.box = all.length ? [Math.min(...xs) - edge, Math.min(...ys) - edge, Math.max(...xs) - Math.min(...xs) + 2 * edge, Math.max(...ys) - Math.min(...ys) + 2 * edge] : [0, 0, 1, 1];
    this.width = this.box[2];
    this.show();
  }

  zoom(by) {
    const [x, y, width, height] = this.box, scale = Math.min(LARGEST, Math.max(SMALLEST, (this.width / width) * by)), to = this.width / scale / width;
    this.box = [x + (width * (1 - to)) / 2, y + (height * (1 - to)) / 2, width * to, height * to];
    this.show();
  }

  // -- moving

  run() {
    cancelAnimationFrame(this.timer);
    const turn = () => {
      if (this.isStill || this.forces.isCold) return;
      this.forces.step();
      this.place();
      this.timer = requestAnimationFrame(turn);
    };
    this.timer = requestAnimationFrame(turn);
  }

  stop() { cancelAnimationFrame(this.timer); }

  settle(isStill) {
    this.isStill = isStill;
    if (!isStill) { this.forces.warm(0.5); this.run(); }
  }

  arrange() {
    const places = begin(this.graph.units, this.graph.connectors);
    for (const [name, node] of this.nodes) { [node.x, node.y] = places.get(name); node.isHeld = false; }
    this.forces.warm();
    for (let i = 0; i < 150 && !this.forces.isCold; i++) this.forces.step();
    this.place();
    this.fit();
  }

  /** A unit is dragged, or the picture. */
  grab(event) {
    const node = this.nodes.get(event.target.closest?.("g.node")?.dataset.name), scale = Math.max(this.box[2] / this.svg.clientWidth, this.box[3] / this.svg.clientHeight);
    let [x, y] = [event.clientX, event.clientY], isMoved = false;
    const move = (now) => {
      const [dx, dy] = [(now.clientX - x) * scale, (now.clientY - y) * scale];
      [x, y] = [now.clientX, now.clientY];
      isMoved ||= Math.hypot(dx, dy) > 0;
      if (node) { node.isHeld = true; node.x += dx; node.y += dy; this.forces.warm(0.2); this.run(); this.place(); }
      else { this.box = [this.box[0] - dx, this.box[1] - dy, this.box[2], this.box[3]]; this.show(); }
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      if (node && !isMoved) this.choose(node.unit.name);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  }

  layout() {
    return { places: Object.fromEntries([...this.nodes].map(([name, { x, y }]) => [name, [x, y]])), is_still: this.isStill };
  }

  // -- telling

  find(text, isSure = false) {
    let first = null;
    for (const [name, node] of this.nodes) {
      const isFound = text !== "" && name.toLowerCase().includes(text);
      node.shape.classList.toggle("found", isFound);
      if (isFound) first ??= node;
    }
    if (first) { this.box = [first.x - this.box[2] / 2, first.y - this.box[3] / 2, this.box[2], this.box[3]]; this.show(); }
    if (first && isSure) { first.shape.focus(); this.choose(first.unit.name); }
  }

  tell(now) {
    this.figures = Object.fromEntries(now.units.map((one) => [one.name, one.metrics]));
    for (const one of now.connectors) {
      const before = this.flows[one.name];
      this.flows[one.name] = { ...one, isFlowing: before && one.passed > before.passed, isStalled: before && one.stalled > before.stalled };
    }
    for (const one of this.arrows) {
      const flow = this.flows[one.connector.name];
      one.line.classList.toggle("flowing", Boolean(flow?.isFlowing));
      one.line.classList.toggle("stalled", Boolean(flow?.isStalled));
      one.label.textContent = flow?.waiting ? `${count(flow.waiting)} of ${count(one.connector.capacity)}` : "";
    }
    if (this.chosen) this.choose(this.chosen);
  }

  choose(name) {
    this.chosen = name;
    const { unit } = this.nodes.get(name), figures = Object.entries(this.figures[name] ?? {});
    for (const node of this.nodes.values()) node.shape.classList.toggle("chosen", node.unit.name === name);
    replace(this.told, h("section", { class: "card", id: "told" }, h("h3", {}, unit.name), h("p", {}, prose(unit.doc)), terms([
      ["is", unit.use], ["kind", unit.kind], ["process", unit.process], ["workers", unit.workers > 1 ? unit.workers : ""],
      ["takes from", Object.entries(unit.inputs).map(([port, from]) => `${from} (${port})`).join(", ")], ["gives to", Object.entries(unit.outputs).map(([port, to]) => `${to} (${port})`).join(", ")],
      ["uses", unit.providers.join(", ")], ...figures.map(([word, value]) => [word.replaceAll("_", " "), count(value)]),
    ]), this.instances(unit), h("p", {}, h("a", { href: `#/${encodeURIComponent(this.key)}/settings/${encodeURIComponent(name)}` }, "Its settings"))));
  }

  /** The instances of a unit that has several; each is asked for what it has counted while they are shown. */
  instances(unit) {
    if (unit.instances * Math.max(1, this.graph.agents.length) < 2) return null;
    const place = h("div", {}, this.shown?.name === unit.name ? this.shown.table : "");
    instancesOf(this.key, unit.name).then((table) => { if (table) { this.shown = { name: unit.name, table }; replace(place, table); } }).catch(() => {}); // at rest there are none
    return place;
  }
}

function tablesOf(picture) {
  const { graph, flows } = picture, open = (name) => h("button", { id: `tell-${name}`, onclick: () => { picture.choose(name); document.getElementById("told").scrollIntoView(); } }, name);
  return [
    h("h3", {}, "Connectors"),
    table("Connectors", [
      ["connector", (one) => one.name], ["carries", (one) => one.carries], ["from", (one) => one.producers.join(", ")], ["to", (one) => one.consumers.join(", ")], ["address", (one) => one.address],
      ["waiting", (one) => `${count(flows[one.name]?.waiting)} of ${count(one.capacity)}`, true], ["passed", (one) => count(flows[one.name]?.passed), true], ["producers stood still", (one) => seconds(flows[one.name]?.stalled ?? 0), true],
    ], graph.connectors),
    h("h3", {}, "Units"),
    table("Units", [
      ["unit", (one) => open(one.name)], ["kind", (one) => one.kind], ["is", (one) => one.use], ["process", (one) => one.process], ["uses", (one) => one.providers.join(", "), "prose"], ["does", (one) => prose(one.doc), "prose"],
    ], graph.units),
  ];
}

// A layout by forces: springs pull along edges, nodes push each other away, and all of it cools down. Pure numbers, no drawing.

const LENGTH = 120, REACH = 320, PUSH = 9_000, PULL = 0.06, HOME = 0.004, DRAG = 0.6, COOLING = 0.985, COLD = 0.02, FASTEST = 60;

export class Forces {
  /** `nodes` are objects with x, y and maybe isHeld; `edges` are pairs of them. */
  constructor(nodes, edges) {
    Object.assign(this, { nodes, edges, heat: 1 });
    for (const node of nodes) Object.assign(node, { vx: 0, vy: 0 });
  }

  get isCold() { return this.heat < COLD; }

  warm(heat = 1) { this.heat = Math.max(this.heat, heat); }

  /** One step. Nodes push only those within reach, found by a grid, so that a thousand take some milliseconds. */
  step() {
    const cells = new Map(), cell = (x, y) => `${Math.floor(x / REACH)}:${Math.floor(y / REACH)}`;
    for (const node of this.nodes) {
      const at = cell(node.x, node.y);
      if (cells.has(at)) cells.get(at).push(node); else cells.set(at, [node]);
    }
    for (const node of this.nodes) {
      node.vx -= node.x * HOME * this.heat;
      node.vy -= node.y * HOME * this.heat;
      for (let dx = -1; dx <= 1; dx++) for (let dy = -1; dy <= 1; dy++) {
        for (const other of cells.get(cell(node.x + dx * REACH, node.y + dy * REACH)) ?? []) this.push(node, other);
      }
    }
    for (const [from, to] of this.edges) {
      const x = to.x - from.x, y = to.y - from.y, far = Math.hypot(x, y) || 1, pull = ((far - LENGTH) / far) * PULL * this.heat;
      from.vx += x * pull; from.vy += y * pull;
      to.vx -= x * pull; to.vy -= y * pull;
    }
    for (const node of this.nodes) {
      const fast = Math.min(1, FASTEST / (Math.hypot(node.vx, node.vy) || 1));
      if (!node.isHeld) { node.x += node.vx * fast; node.y += node.vy * fast; }
      node.vx *= DRAG; node.vy *= DRAG;
    }
    this.heat *= COOLING;
  }

  push(node, other) {
    if (node === other) return;
    const x = node.x - other.x, y = node.y - other.y, near = Math.max(x * x + y * y, 100);
    if (near > REACH * REACH) return;
    const push = (PUSH / near / Math.sqrt(near)) * this.heat;
    node.vx += x * push; node.vy += y * push;
  }
}

/** Where nodes begin: those that work in the order of the flow from left to right, those that are used in a row below. */
export function begin(units, connectors) {
  const depth = new Map(), workers = units.filter((one) => one.kind !== "provider");
  const next = new Map(workers.map((one) => [one.name, []]));
  for (const one of connectors) for (const from of one.producers) next.get(from)?.push(...one.consumers);
  let front = workers.filter((one) => !Object.keys(one.inputs).length).map((one) => one.name);
  for (let level = 0; front.length; level++) {
    for (const name of front) depth.set(name, level);
    front = [...new Set(front.flatMap((name) => next.get(name) ?? []))].filter((name) => !depth.has(name));
  }
  const rows = new Map(), most = Math.max(0, ...depth.values()) + 1;
  const providers = units.filter((one) => one.kind === "provider");
  const width = most * 130;
  return new Map([
    ...workers.map((one) => {
      const column = depth.get(one.name) ?? most, row = rows.get(column) ?? 0;
      rows.set(column, row + 1);
      return [one.name, [column * 130 - width / 2, row * 90 - 150]];
    }),
    ...providers.map((one, number) => [one.name, [(number + 0.5) * (width / providers.length) - width / 2, 120 + (number % 3) * 70]]),
  ]);
}

// A change of the graph, put together by forms: shown as a change file and as a difference, applied, and undone.
import { get, order } from "./api.js";
import { agentPick } from "./agents.js";
import { h, replace } from "./dom.js";

const TABLES = ["components", "connectors", "providers"];
const HINTS = {
  ports: "port = connector, one a line", providers: "role = provider, or role.key = provider, one a line", settings: "setting = value, one a line",
};

export function rewire(parent, { key, session, alive }) {
  const change = { remove: [], components: {}, connectors: {}, providers: {} };
  const said = h("p", { role: "status", "aria-live": "polite" }), entry = h("div"), list = h("div"), agents = h("p", { class: "actions" }), shown = h("pre", { id: "change", tabindex: "0", role: "region", "aria-label": "The change file" });
  let graph = null, names = null, agent = "";
  replace(parent, h("h2", {}, "Change the graph"), h("p", {}, "Add, change and remove units and connectors while the crawl works. No item is lost, and a change that does not fit changes nothing."), agents, said, entry, list);
  const tell = (text, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = text; };
  const load = async () => {
    try {
      [graph, names] = await Promise.all([get(`crawls/${encodeURIComponent(key)}/graph?${new URLSearchParams({ agent })}`), get("catalog")]);
      if (!session.can_change) tell("Your token may only read.");
      else {
        if (!agent) replace(agents, agentPick(graph.agents, agent, (name) => { agent = name; load(); }));
        choose("components", "");
        draw();
      }
    } catch (error) { tell(error.message, true); }
  };
  const here = (table) => (table === "connectors" ? graph.connectors : graph.units.filter((one) => (one.kind === "provider") === (table === "providers")));
  const choose = (table, name) => {
    const known = here(table).find((one) => one.name === name);
    replace(entry, h("section", { class: "card" },
      h("form", { class: "rows", onsubmit: (event) => { event.preventDefault(); put(table, known, event.target.elements); } },
        h("label", { for: "table" }, "What"), h("select", { id: "table", onchange: (event) => choose(event.target.value, "") }, TABLES.map((one) => h("option", { value: one, selected: one === table }, one.slice(0, -1)))),
        h("label", { for: "which" }, "Which"), h("select", { id: "which", onchange: (event) => choose(table, event.target.value) }, h("option", { value: "" }, "a new one"), here(table).map((one) => h("option", { value: one.name, selected: one.name === name }, one.name))),
        known ? null : [h("label", { for: "name" }, "Name"), h("input", { id: "name", name: "name", required: true, pattern: "[A-Za-z0-9_\\-]+", autocomplete: "off" })],
        table === "connectors" ? connector(known, names) : unit(table, known, names),
        h("span"), h("div", { class: "actions" }, h("button", { id: "put" }, "Put into the change"),
          known ? h("button", { id: "remove", type: "button", onclick: () => { if (!change.remove.includes(`${table}.${name}`)) change.remove.push(`${table}.${name}`); draw(); } }, "Remove from the graph") : null))));
  };
  const put = (table, known, fields) => {
    try {
      const made = {}, number = (name) => { if (fields[name]?.value && fields[name].value !== fields[name].defaultValue) made[name] = Number(fields[name].value); };
      if (table === "connectors") {
        if (!known || fields.address.value !== fields.address.defaultValue) made.address = fields.address.value.trim();
        number("capacity");
      } else {
        if (fields.use.value) made.use = fields.use.value;
        for (const name of ["ports", "providers", "settings"]) if (fields[name]?.value.trim()) made[name] = lines(fields[name].value, name);
        number("workers"); number("instances");
        if (fields.on_error?.value) made.on_error = fields.on_error.value;
      }
      change[table][known?.name ?? fields.name.value.trim()] = made;
      draw();
    } catch (error) { tell(error.message, true); }
  };
  const draw = () => {
    const parts = [...change.remove.map((name, number) => [`remove ${name}`, () => change.remove.splice(number, 1)]),
      ...TABLES.flatMap((table) => Object.entries(change[table]).map(([name, one]) => [`${table}.${name}: ${JSON.stringify(one)}`, () => delete change[table][name]]))];
    const act = (isApplied) => async () => {
      tell("...");
      try {
        const told = await order(key, "rewire", { change, apply: isApplied, agent });
        shown.textContent = told.text;
        if (told.is_done) { for (const table of TABLES) change[table] = {}; change.remove = []; graph = await get(`crawls/${encodeURIComponent(key)}/graph?${new URLSearchParams({ agent })}`); choose("components", ""); draw(); }
        tell(`${told.is_done ? "Done" : "It would do this"}: ${told.told}.`);
      } catch (error) { tell(error.message, true); }
    };
    const undo = async () => {
      tell("...");
      try { const told = await order(key, "undo", { agent }); await load(); tell(told.done); } catch (error) { tell(error.message, true); }
    };
    replace(list, h("h3", {}, "The change"), parts.length ? h("ul", {}, parts.map(([text, forget], number) => h("li", {}, h("code", {}, text), " ", h("button", { id: `forget-${number}`, "aria-label": `Take out ${text}`, onclick: () => { forget(); draw(); } }, "Take out")))) : h("p", {}, "It says nothing yet."),
      h("div", { class: "actions" }, h("button", { id: "check", disabled: !parts.length, onclick: act(false) }, "Show the difference"), h("button", { id: "apply", disabled: !parts.length, onclick: act(true) }, "Apply"),
        h("button", { id: "undo", onclick: undo }, agent ? `Undo the last change of ${agent}` : "Undo the last change of this crawl")), shown);
  };
  alive("");
  load();
  return () => {};
}

function connector(known, names) {
  return [h("label", { for: "address" }, "Address"), h("input", { id: "address", name: "address", value: known?.address ?? "local:", list: "schemes", autocomplete: "off" }), h("datalist", { id: "schemes" }, names.schemes.map((one) => h("option", { value: `${one}:` }))),
    h("label", { for: "capacity" }, "Capacity"), h("input", { id: "capacity", name: "capacity", type: "number", min: 1, value: known?.capacity ?? 256 })];
}

function unit(table, known, names) {
  const field = (name) => [h("label", { for: name }, name), h("textarea", { id: name, name, rows: 3, spellcheck: "false", placeholder: known ? `unchanged; ${HINTS[name]}` : HINTS[name] }),
    ...(known && present(known, name) ? [h("span", { class: "faint" }, `${name} now`), h("pre", { id: `${name}-now`, tabindex: "0", role: "region", "aria-label": `${name} now` }, present(known, name))] : [])];
  return [
    h("label", { for: "use" }, "Is"), h("select", { id: "use", name: "use" }, h("option", { value: "" }, known ? `${known.use}, as it is` : "(choose)"), names[table].map((one) => h("option", { value: one }, one))),
    table === "components" ? field("ports") : null, field("providers"), field("settings"),
    table === "components" ? [
      h("label", { for: "workers" }, "Workers"), h("input", { id: "workers", name: "workers", type: "number", min: 1, value: known?.workers ?? 1 }),
      h("label", { for: "instances" }, "Instances"), h("input", { id: "instances", name: "instances", type: "number", min: 1, value: known?.instances ?? 1 }),
      h("label", { for: "on_error" }, "When it raises"), h("select", { id: "on_error", name: "on_error" }, h("option", { value: "" }, known ? `${known.on_error}, as it is` : "as usual"), ["stop", "restart", "skip"].map((one) => h("option", { value: one }, one))),
    ] : null,
  ];
}

/** What a unit has now, in the lines that a form takes: all its ports and roles, and the settings that are not as usual. */
function present(known, what) {
  const pairs = what === "ports" ? Object.entries({ ...known.inputs, ...known.outputs })
    : what === "settings" ? known.settings.filter((one) => JSON.stringify(one.value) !== JSON.stringify(one.default)).map((one) => [one.name, JSON.stringify(one.value)])
    : Object.entries(known.roles).flatMap(([role, bound]) => typeof bound === "string" ? [[role, bound]] : Object.entries(bound).map(([key, names]) => [`${role}.${key}`, JSON.stringify(names)]));
  return pairs.map(([name, value]) => `${name} = ${value}`).join("\n");
}

/** Lines of `name = value`; a value that is JSON is taken as such, and a dot in a role makes a table of it. */
function lines(text, what) {
  const made = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const place = line.indexOf("=");
    if (place < 1) throw new Error(`${what}: ${line}: write ${HINTS[what]}`);
    const name = line.slice(0, place).trim(), written = line.slice(place + 1).trim();
    let value = written;
    try { value = JSON.parse(written); } catch { /* a plain text */ }
    const dot = what === "providers" ? name.indexOf(".") : -1;
    if (dot > 0) (made[name.slice(0, dot)] ??= {})[name.slice(dot + 1)] = value;
    else made[name] = what === "ports" || what === "providers" && typeof value !== "object" ? String(value) : value;
  }
  return made;
}

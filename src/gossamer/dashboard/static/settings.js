// Every setting of every unit: what it means, what it may be, and what it is; changed together, all of it or nothing.
import { get, order } from "./api.js";
import { agentPick, instancesOf } from "./agents.js";
import { h, replace, table, terms } from "./dom.js";
import { count, many, prose } from "./words.js";

const REFRESH = 5_000, MOST = 150;

/** A value as `gossamer set` takes it. */
export function written(value) {
  if (value === null || value === undefined) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function settings(parent, { key, rest: chosen, session, alive }) {
  let graph = null, figures = {}, search = "", agent = "", isLeft = false;
  const edits = new Map();
  const found = h("div"), bar = h("div"), said = h("p", { role: "status", "aria-live": "polite" }), metrics = h("div"), all = h("div"), agents = h("span", { class: "actions" });
  const pick = h("select", { id: "unit", onchange: (event) => { location.hash = `#/${encodeURIComponent(key)}/settings/${encodeURIComponent(event.target.value)}`; } });
  const field = h("input", { id: "setting", autocomplete: "off", spellcheck: "false", placeholder: "in all units", oninput: (event) => { search = event.target.value.trim().toLowerCase(); draw(); } });
  const base = `crawls/${encodeURIComponent(key)}`;
  replace(parent, h("h2", {}, "Settings"),
    h("form", { onsubmit: (event) => event.preventDefault() }, h("label", { for: "unit" }, "Unit"), pick, h("label", { for: "setting" }, "or search"), field, agents),
    bar, said, found, metrics, all);

  const load = async () => {
    try {
      const told = await get(`${base}/graph?${new URLSearchParams({ agent })}`);
      if (isLeft) return;
      if (!agent) replace(agents, agentPick(told.agents, agent, (name) => { agent = name; edits.clear(); changed(); load(); look(); }, "all agents"));
      graph = told;
      chosen = graph.units.some((one) => one.name === chosen) ? chosen : graph.units[0]?.name;
      replace(pick, graph.units.map((one) => h("option", { value: one.name, selected: one.name === chosen }, `${one.name} (${one.kind})`)));
      draw();
    } catch (error) { replace(found, h("p", { class: "trouble" }, error.message)); }
  };
  const look = async () => {
    try {
      const now = await get(`${base}?${new URLSearchParams({ units: "1", agent })}`);
      if (isLeft) return;
      alive(now.process ? `as of ${new Date().toLocaleTimeString()}` : "The crawl rests.");
      figures = Object.fromEntries(now.units.map((one) => [one.name, one.metrics]));
      count_();
      const instances = now.process && chosen && !search ? await instancesOf(key, chosen) : null;
      if (!isLeft) replace(all, instances ?? []);
    } catch (error) { alive(error.message); }
  };
  const count_ = () => {
    const own = Object.entries(figures[chosen] ?? {});
    replace(metrics, search || !own.length ? [] : [h("h3", {}, "Has counted"), terms(own.map(([name, value]) => [name.replaceAll("_", " "), count(value)]))]);
  };
  const changed = () => {
    const act = async (word) => {
      said.className = "";
      said.textContent = "...";
      try {
        said.textContent = (await order(key, word, { values: Object.fromEntries(edits), agent })).done;
        if (word === "set") { edits.clear(); changed(); await load(); }
      } catch (error) { said.className = "trouble"; said.textContent = error.message; }
    };
    replace(bar, edits.size ? h("div", { class: "actions" }, h("strong", {}, many(edits.size, "change"), agent ? ` of ${agent} alone, until it begins again` : ""),
      h("button", { id: "do-check", onclick: () => act("check-set") }, "Check"), h("button", { id: "do-apply", onclick: () => act("set") }, "Apply together"),
      h("button", { id: "do-forget", onclick: () => { edits.clear(); said.textContent = ""; changed(); draw(); } }, "Forget")) : []);
  };
  const draw = () => {
    const named = (unit, one) => `${unit.name}.${one.name} ${one.doc}`.toLowerCase().includes(search);
    const rows = graph.units.flatMap((unit) => unit.settings.filter((one) => (search ? named(unit, one) : unit.name === chosen)).map((one) => ({ unit, one })));
    const unit = graph.units.find((one) => one.name === chosen);
    replace(found, search || !unit ? h("h3", {}, many(rows.length, "setting")) : [h("h3", {}, unit.name), h("p", {}, prose(unit.doc)), about(unit)],
      rows.length ? table("Settings", columns(session, edits, changed, Boolean(search)), rows.slice(0, MOST)) : h("p", {}, "It has none."),
      rows.length > MOST ? h("p", { class: "faint" }, `Only the first ${MOST} are shown.`) : null);
    count_();
  };
  load();
  look();
  const timer = setInterval(look, REFRESH);
  return () => { isLeft = true; clearInterval(timer); };
}

function about(unit) {
  return terms([["is", unit.use], ["kind", unit.kind], ["process", unit.process], ["workers", unit.workers > 1 ? unit.workers : ""], ["instances", unit.instances > 1 ? unit.instances : ""],
    ["when it raises", unit.on_error], ["uses", unit.providers.join(", ")]]);
}

function columns(session, edits, changed, withUnit) {
  return [
    ["setting", ({ unit, one }) => h("code", {}, withUnit ? `${unit.name}.${one.name}` : one.name)],
    ["value", ({ unit, one }) => value(unit, one, session, edits, changed)],
    ["takes", ({ one }) => [one.kind, one.unit ? ` (${one.unit})` : "", one.bounds ? `, ${one.bounds}` : ""]],
    ["usually", ({ one }) => h("code", {}, written(one.default))],
    ["does", ({ one }) => prose(one.doc), "prose"],
    ["changes", ({ one }) => (one.restart ? `at restart: ${one.restart}` : one.names ? `live, from the command line: it can name ${one.names}` : "live")],
  ];
}

function value(unit, one, session, edits, changed) {
  const name = `${unit.name}.${one.name}`, text = written(one.value);
  if (!session.can_change || one.restart || one.names) return h("code", {}, text);
  const edit = (event) => {
    const now = event.target.value;
    if (now === text) edits.delete(name); else edits.set(name, now);
    changed();
  };
  const given = edits.get(name) ?? text, common = { id: `value-${name}`, "aria-label": name };
  const words = one.kind === "true or false" ? ["true", "false"] : one.kind === one.words.join(" or ") ? one.words : [];
  if (words.length) return h("select", { ...common, onchange: edit }, words.map((word) => h("option", { value: word, selected: word === given }, word)));
  if (one.is_secret) return h("input", { ...common, type: "password", autocomplete: "off", placeholder: one.value && one.value.length ? "(hidden)" : "", value: edits.get(name) ?? "", oninput: (event) => { if (event.target.value) edits.set(name, event.target.value); else edits.delete(name); changed(); } });
  return h("input", { ...common, value: given, autocomplete: "off", spellcheck: "false", oninput: edit });
}

// What every unit of a running crawl has counted, and what passed each connector: where items wait, and who holds them up.
import { get, order } from "./api.js";
import { agentPick } from "./agents.js";
import { h, replace, table } from "./dom.js";
import { count, seconds } from "./words.js";

const REFRESH = 5_000;

export function units(parent, { key, alive }) {
  let search = "", agent = "", now = null, agents = "";
  const found = h("div"), pick = h("span", { class: "actions" });
  const draw = () => replace(found, now.process ? shown(now, search, suspend) : h("p", {}, "The crawl rests: its units count nothing."));
  const said = h("p", { role: "status" });
  const suspend = async (one) => {
    try { said.textContent = (await order(key, one.is_suspended ? "unsuspend" : "suspend", { unit: one.name, agent })).done; await look(); }
    catch (error) { said.textContent = error.message; }
  };
  const field = h("input", { id: "unit", autocomplete: "off", spellcheck: "false", oninput: (event) => { search = event.target.value.trim().toLowerCase(); if (now) draw(); } });
  replace(parent, h("h2", {}, "Units"), h("form", { onsubmit: (event) => event.preventDefault() }, h("label", { for: "unit" }, "Name"), field, pick), said, found);
  const look = async () => {
    try {
      now = await get(`crawls/${encodeURIComponent(key)}?${new URLSearchParams({ units: "1", agent })}`);
      const names = now.each_agent.map((one) => one.name);
      if (!agent && agents !== names.join()) { agents = names.join(); replace(pick, agentPick(names, agent, (name) => { agent = name; look(); })); }
      alive(`as of ${new Date().toLocaleTimeString()}`);
      draw();
    } catch (error) { alive(error.message); }
  };
  look();
  const timer = setInterval(look, REFRESH);
  return () => clearInterval(timer);
}

function shown(now, search, suspend) {
  const named = (one) => one.name.toLowerCase().includes(search);
  return [
    h("h3", {}, "Connectors"),
    table("Connectors", [
      ["connector", (one) => one.name], ["passed", (one) => count(one.passed), true], ["waiting", (one) => count(one.waiting), true],
      ["most that waited", (one) => count(one.peak), true], ["producers stood still", (one) => seconds(one.stalled), true],
    ], now.connectors.filter(named)),
    h("h3", {}, "Components and providers"),
    table("Components and providers", [
      ["unit", (one) => one.name], ["is", (one) => one.use],
      ["has counted", (one) => Object.entries(one.metrics).map(([name, value]) => `${name} ${count(value)}`).join(", "), "prose"],
      ["", (one) => h("button", { type: "button", onclick: () => suspend(one) }, one.is_suspended ? `Let ${one.name} go on` : `Suspend ${one.name}`)],
    ], now.units.filter(named)),
  ];
}

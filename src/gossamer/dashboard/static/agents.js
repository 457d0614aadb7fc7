// The agents of a crawl that has several: choosing one, and the instances of a unit in all of them.
import { get } from "./api.js";
import { h, table } from "./dom.js";
import { count } from "./words.js";

/** The choice of one agent, or of all; nothing where the crawl has one. */
export function agentPick(agents, chosen, choose, all = "all agents") {
  if (agents.length < 2) return [];
  return [h("label", { for: "agent" }, "Agent"), h("select", { id: "agent", onchange: (event) => choose(event.target.value) },
    h("option", { value: "" }, all), agents.map((name) => h("option", { value: name, selected: name === chosen }, name)))];
}

/** Every instance of a unit, with what it has counted and the settings that differ; null where there is one. */
export async function instancesOf(key, name) {
  const told = await get(`crawls/${encodeURIComponent(key)}/unit?name=${encodeURIComponent(name)}`), all = told.instances;
  if (all.length < 2) return null;
  const metrics = [...new Set(all.flatMap((one) => Object.keys(one.metrics)))], text = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value ?? ""));
  const differing = Object.keys(all[0].settings).filter((setting) => new Set(all.map((one) => text(one.settings[setting]))).size > 1);
  return h("div", {}, h("h4", {}, "Instances"), table(`Instances of ${name}`, [
    ["instance", (one) => [one.agent, one.number > 1 || all.filter((other) => other.agent === one.agent).length > 1 ? `instance ${one.number}` : ""].filter(Boolean).join(", ") || "in another process"],
    ...differing.map((setting) => [`setting ${setting.replaceAll("_", " ")}`, (one) => text(one.settings[setting])]),
    ...metrics.map((metric) => [metric.replaceAll("_", " "), (one) => count(one.metrics[metric]), true]),
  ], all));
}

// The overview of one crawl: the numbers of `gossamer status`, problems first.
import { get, order, watch } from "./api.js";
import { card, h, replace, table, terms } from "./dom.js";
import { plot, speed } from "./plot.js";
import { SEVERITIES, WAITS, bytes, count, many, percent, ranked, seconds } from "./words.js";

const REFRESH = 10_000, SOON = 30 * 86_400;

/** Problem -> the report that says more. */
const REPORTS = { failing: "errors", given_up: "errors", slowed: "errors", no_pages: "errors", robots_unreachable: "errors", slow_hosts: "slow", slow_pages: "slow", few_hosts: "hosts" };

const SEEN = {
  pages: "SELECT url, title, depth, fetched_at FROM pages WHERE outcome IN ('ok', 'not_modified') AND mime IN ('text/html', 'application/xhtml+xml') ORDER BY fetched_at DESC",
  outcome: (name) => `SELECT url, status, error, attempt, fetched_at FROM pages_all WHERE outcome = '${name.replaceAll("'", "''")}' ORDER BY fetched_at DESC`,
};

/** A link to a page of this crawl. */
const at = (key, page, rest, text) => h("a", { href: `#/${encodeURIComponent(key)}/${page}${rest ? `/${encodeURIComponent(rest)}` : ""}` }, text);
const hostAt = (key, name) => at(key, "host", name, name);
const listed = (links) => links.flatMap((one, number) => (number ? [", ", one] : [one])).flat();

export function overview(parent, { key, session, alive }) {
  const head = h("div"), actions = h("div"), body = h("div", { class: "grid" }), plots = h("div", { class: "grid" });
  const said = h("p", { role: "status", "aria-live": "polite" });
  replace(parent, head, actions, said, body, h("h2", {}, "The last hours"), hoursOf((hours) => { past = hours; draw(); }), plots);
  let past = 1, state = "";
  const draw = async () => {
    try { replace(plots, plotsOf(await get(`crawls/${encodeURIComponent(key)}/samples?hours=${past}`))); }
    catch (error) { replace(plots, h("p", { class: "trouble" }, error.message)); }
  };
  const told = (now) => {
    alive(`as of ${new Date().toLocaleTimeString()}`);
    replace(head, headOf(now));
    const kind = `${now.state} ${now.process > 0} ${now.checkpoints.length}`;
    if (state !== kind) { state = kind; replace(actions, actionsOf(key, now, session, said)); }
    replace(body, problemsOf(key, now, session, said), sectionsOf(key, now));
  };
  const close = watch(key, told, (text) => alive(text));
  const timer = setInterval(draw, REFRESH);
  draw();
  return () => { close(); clearInterval(timer); };
}

function hoursOf(choose) {
  const pick = h("select", { id: "hours", onchange: (event) => choose(Number(event.target.value)) },
    [[1, "hour"], [6, "6 hours"], [24, "day"], [168, "week"], [8760, "year"]].map(([hours, word]) => h("option", { value: hours }, word)));
  return h("p", {}, h("label", { for: "hours" }, "Show the last "), pick);
}

function headOf(now) {
  const left = now.time_left ? `, ${now.time_left} left` : now.estimate && now.queued ? `, about ${seconds(now.estimate)} left` : "";
  return [h("h2", {}, now.crawl), h("p", {}, h("strong", {}, now.state), `, ${seconds(now.seconds)}${left}`, now.process ? `, process ${now.process}` : "")];
}

function actionsOf(key, now, session, said) {
  if (!session.can_change) return [];
  const button = (word, text, fields, question) => h("button", { id: `do-${word}`, onclick: () => {
    if (!question || confirm(question)) act(key, word, fields, said);
  } }, text);
  if (!now.process) {
    const back = now.checkpoints.length ? [h("label", { for: "checkpoint" }, "Checkpoint"), h("select", { id: "checkpoint" }, now.checkpoints.map((name) => h("option", {}, name))),
      h("button", { id: "do-restore", onclick: () => {
        const name = document.getElementById("checkpoint").value;
        if (confirm(`Go back to ${name}? The crawl then repeats what it did since.`)) act(key, "restore", { name }, said);
      } }, "Go back")] : [];
    return h("div", { class: "actions" }, button("resume", "Resume"), back);
  }
  return h("div", { class: "actions" },
    now.state === "paused" ? button("continue", "Go on") : button("pause", "Pause"),
    button("checkpoint", "Keep a checkpoint"),
    button("stop", "Stop", {}, "Stop this crawl? It can be resumed."),
    h("form", { onsubmit: (event) => {
      event.preventDefault();
      const [name, value] = [event.target.elements.option.value.trim(), event.target.elements.value.value.trim()];
      act(key, "set", { values: { [name]: value } }, said);
    } },
      h("label", {}, "Set ", h("input", { name: "option", id: "option", placeholder: "delay", required: true, autocomplete: "off" })),
      h("label", {}, " to ", h("input", { name: "value", id: "value", placeholder: "5s", autocomplete: "off" })),
      h("button", { id: "do-set" }, "Change")));
}

async function act(key, word, fields, said) {
  said.className = "";
  said.textContent = "...";
  try { said.textContent = (await order(key, word, fields)).done; }
  catch (error) { said.className = "trouble"; said.textContent = error.message; }
}

function problemsOf(key, now, session, said) {
  const items = now.problems.map((one, number) => h("li", { class: one.severity },
    h("span", { class: "word" }, SEVERITIES[one.severity]), " ", h("strong", {}, one.reason),
    h("div", { class: "evidence" }, one.evidence),
    one.command ? h("div", {}, h("code", {}, one.command), " ", copy(one.command, number, said)) : null,
    leads(key, one), helps(key, one, now, session, said, number)));
  return h("section", { class: "card wide", id: "problems" }, h("h3", {}, "Problems"),
    items.length ? h("ol", { class: "problems" }, items) : h("p", {}, "None."));
}

function copy(text, number, said) {
  return h("button", { id: `copy-${number}`, "aria-label": `Copy ${text}`, onclick: async () => {
    await navigator.clipboard.writeText(text);
    said.textContent = "copied";
  } }, "Copy");
}

/** Links to what a problem tells of: its hosts, and the page that says more. */
function leads(key, one) {
  const more = one.what === "set_aside" ? at(key, "traps", "", "Show what is set aside") : REPORTS[one.what] ? at(key, "report", REPORTS[one.what], "Show the report") : null;
  return one.hosts.length || more ? h("div", { class: "actions" }, more, one.hosts.map((name) => hostAt(key, name))) : null;
}

/** The button that does what the command would, where it is one click. */
function helps(key, one, now, session, said, number) {
  if (!session.can_change) return null;
  const button = (text, word, fields) => h("button", { id: `help-${number}`, onclick: () => act(key, word, fields, said) }, text);
  if (one.what === "paused") return button("Go on", "continue", {});
  if (one.what === "suspended") return button(`Let ${now.suspended[0]} go on`, "unsuspend", { unit: now.suspended[0] });
  if (["unreachable", "dns_failed"].includes(one.what) && one.hosts.length) return button(`Block ${one.hosts[0]}`, "block", { names: [one.hosts[0]] });
  if (one.what === "slots" && now.process) return button(`${2 * now.concurrency} slots`, "set", { values: { concurrency: String(2 * now.concurrency) } });
  return null;
}

function sectionsOf(key, now) {
  return [
    card("Pages", terms([
      ["pages", at(key, "ask", SEEN.pages, count(now.pages))], ["fetched", count(now.fetched)], ["unique documents", count(now.unique_documents)], ["duplicates", now.fetched > now.unique_documents && now.outcomes.ok > now.unique_documents ? at(key, "report", "duplicates", count(now.outcomes.ok - now.unique_documents)) : ""], ["received", bytes(now.bytes)],
      ["speed", now.process ? `${now.recent_pages_per_second.toFixed(1)} pages/s, mean ${now.pages_per_second.toFixed(1)}` : `${now.pages_per_second.toFixed(1)} pages/s`],
    ])),
    card("Queue", terms([
      ["queued", count(now.queued)], ["discovered", count(now.discovered)], ["links", now.links ? `${count(now.links)} in this run, ${percent(now.new_links / now.links)} to new URLs` : ""], ["set aside", now.set_aside ? at(key, "traps", "", count(now.set_aside)) : "0"], ["hosts", at(key, "hosts", "", count(now.hosts))],
      ["slots", now.concurrency ? `${count(now.in_flight)} of ${count(now.concurrency)} in use` : ""],
    ])),
    card("Outcomes", terms(ranked(now.outcomes).map(([name, number]) => [name, at(key, "ask", SEEN.outcome(name), count(number))]))),
    card("Waits", now.waits.length ? terms(now.waits.map((wait) => [WAITS[wait.why] ?? wait.why, waited(wait)])) : h("p", {}, "For nothing.")),
    card("Hosts", terms([
      ["failing", listed(now.failing.map((one) => [hostAt(key, one.host), ` ${count(one.errors)}`]))],
      ["slowest", listed(now.slowest.map((one) => [hostAt(key, one.host), ` ${seconds(one.seconds)}`]))],
      ["slowed", listed(now.slowed.map((one) => [hostAt(key, one.host), ` ${seconds(one.delay)} (${one.reason})`]))],
      ["blocked", now.blocked.join(", ")],
    ])),
    card("Machine", terms([
      ["CPU", now.busy ? `${percent(now.busy)} of a core, ${seconds(now.cpu_seconds)} in all` : seconds(now.cpu_seconds)],
      ["memory", `${bytes(now.peak_rss_bytes)} at most`], ["disk", now.disk_free ? `${bytes(now.disk_free)} free` : ""], ["full in", full(now)],
    ])),
    now.each_agent.length ? h("section", { class: "card wide", id: "agents" }, h("h3", {}, many(now.each_agent.length, "agent")), table("Agents", [
      ["agent", (one) => (one.node ? `${one.name} on ${one.node}` : one.name)], ["state", (one) => one.state], ["pages", (one) => count(one.pages), true], ["pages/s", (one) => one.recent_pages_per_second.toFixed(1), true], ["queued", (one) => count(one.queued), true],
      ["hosts", (one) => count(one.hosts), true], ["slots", (one) => (one.concurrency ? `${count(one.in_flight)} of ${count(one.concurrency)}` : ""), true], ["errors", (one) => count(one.errors), true],
      ["CPU", (one) => percent(one.busy), true], ["memory", (one) => bytes(one.peak_rss_bytes), true],
    ], now.each_agent)) : null,
    now.each_master.length ? h("section", { class: "card wide", id: "masters" }, h("h3", {}, many(now.each_master.length, "master")), table("Masters", [
      ["master", (one) => one.name], ["state", (one) => one.state], ["URLs marshaled", (one) => count(one.marshaled), true],
      ["waiting", (one) => count(one.waiting), true], ["latest agent", (one) => (one.lag ? `${one.lag.toFixed(1)} s` : ""), true],
    ], now.each_master)) : null,
    card("Stores", table("Stores", [
      ["store", (one) => one.name], ["size", (one) => bytes(one.bytes), true], ["URLs", (one) => (one.items ? count(one.items) : ""), true],
      ["growth", (one) => (one.growth ? `${bytes(one.growth)}/s` : ""), true],
    ], now.sizes)),
  ];
}

function waited(wait) {
  const until = wait.until ? `next in ${seconds(Math.max(0, wait.until - Date.now() / 1000))}` : "";
  return [wait.urls ? many(wait.urls, "URL") : "", wait.hosts ? many(wait.hosts, "host") : "", wait.names.join(", "), wait.reason, until].filter(Boolean).join(", ");
}

/** When the disk is full at this growth, where that is soon; the seen set and the frontier are parts of the ledger. */
function full(now) {
  const growth = now.sizes.filter((one) => !["seen", "frontier"].includes(one.name)).reduce((sum, one) => sum + one.growth, 0);
  const left = growth > 0 && now.process ? now.disk_free / growth : Infinity;
  return left < SOON ? seconds(left) : "";
}

function plotsOf(samples) {
  const times = samples.taken_at.map((text) => Date.parse(text));
  const rate = (shown) => (value) => `${shown(value)}/s`, one = (value) => value.toFixed(1);
  return [
    plot("Pages a second", times, samples.pages_per_second, one),
    plot("Received", times, speed(times, samples.bytes), rate(bytes)),
    plot("Queue", times, samples.queued, count),
    plot("New URLs", times, speed(times, samples.discovered), rate(one)),
    plot("Errors", times, speed(times, samples.errors), rate(one)),
    plot("Slots in use", times, samples.in_flight, count),
    plot("Memory", times, samples.peak_rss_bytes, bytes),
    plot("Disk free", times, samples.disk_free, bytes),
  ];
}

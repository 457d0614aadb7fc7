// The list of sites: folders of crawls on this machine, and dashboards elsewhere.
import { ask, get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { count } from "./words.js";

/** Milliseconds between two looks at the crawls of dashboards elsewhere. */
const REFRESH = 10_000;

/** `changed` is called when the list has become another. */
export function sites(parent, session, changed) {
  const said = h("p", { role: "status", "aria-live": "polite" }), found = h("div"), elsewhere = h("div");
  const name = h("input", { id: "site-name", autocomplete: "off", maxlength: 100, required: true });
  const place = h("input", { id: "site-place", autocomplete: "off", spellcheck: "false", required: true, placeholder: "/srv/crawls or http://HOST:PORT/?token=..." });
  const about = h("input", { id: "site-about", autocomplete: "off", maxlength: 500 });
  let known = [];
  const tell = (words, isTrouble = false) => { said.className = isTrouble ? "trouble" : ""; said.textContent = words; };
  const keep = async (list, words) => {
    try {
      known = (await ask("sites", { sites: list.map((one) => ({ name: one.name, place: one.place, description: one.description })) })).sites;
      draw();
      tell(words);
      changed();
      return true;
    } catch (error) { tell(error.message, true); return false; }
  };
  const add = async (event) => {
    event.preventDefault();
    const one = { name: name.value.trim(), place: place.value.trim(), description: about.value.trim() };
    if (await keep([...known.filter((other) => other.name !== one.name), one], `${one.name} is in the list.`)) { name.value = place.value = about.value = ""; name.focus(); }
  };
  const edit = (one) => { name.value = one.name; place.value = one.place; about.value = one.description; place.focus(); };
  const forget = async (one) => { if (await keep(known.filter((other) => other !== one), `${one.name} is no longer in the list.`)) name.focus(); };
  const draw = () => replace(found, known.length ? table("Sites", [
    ["site", (one) => one.name], ["place", (one) => (one.is_address ? way(one, session) : one.place)], ["description", (one) => one.description, "prose"],
    ...(session.can_change ? [["change", (one) => h("div", { class: "actions" }, h("button", { type: "button", "aria-label": `Edit ${one.name}`, onclick: () => edit(one) }, "Edit"), h("button", { type: "button", "aria-label": `Remove ${one.name}`, onclick: () => forget(one) }, "Remove"))]] : []),
  ], known) : h("p", { class: "faint" }, "The list is empty. Sites are further folders of crawls on this machine, and dashboards elsewhere."));
  replace(parent, h("h2", {}, "Sites"), found, elsewhere, session.can_change ? h("form", { onsubmit: add }, h("label", { for: "site-name" }, "Name"), name, h("label", { for: "site-place" }, "Folder or address"), place, h("label", { for: "site-about" }, "Description"), about, h("button", { id: "keep-site" }, "Keep")) : null, said);
  const watch = async () => {
    if (!elsewhere.isConnected) { clearInterval(timer); return; }
    if (!session.can_change || document.hidden || !known.some((one) => one.is_address)) return;
    try {
      const rows = (await get("sites/crawls")).flatMap((site) => site.crawls.length ? site.crawls.map((one) => ({ site: site.name, ...one })) : [{ site: site.name, directory: "", trouble: site.trouble || "has no crawls" }]);
      replace(elsewhere, h("h3", {}, "Crawls elsewhere"), table("Crawls elsewhere", [
        ["site", (one) => one.site], ["crawl", (one) => one.directory], ["state", (one) => one.standing?.state ?? one.trouble, "prose"],
        ["pages", (one) => (one.standing ? count(one.standing.pages) : ""), true], ["queued", (one) => (one.standing ? count(one.standing.queued) : ""), true],
      ], rows));
    } catch (error) { tell(error.message, true); }
  };
  const timer = setInterval(watch, REFRESH);
  get("sites").then((told) => { known = told.sites; draw(); return watch(); }).catch((error) => tell(error.message, true));
}

/** A link to a dashboard; its key, where there is one, is added by the server. */
function way(one, session) {
  const address = one.has_key && session.can_change ? `/api/sites/open?${new URLSearchParams({ name: one.name })}` : one.place;
  return h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, one.place);
}

// Elements out of values. What comes from a crawl is text, always: nothing here parses HTML.

/** An element with attributes and children; a string is text, `onclick` and the like are listeners, null is left out. */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same, of SVG. */
export function s(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return element;
}

/** Put these children in the place of what is there; the focus stays with the element that is like the one that had it. */
export function replace(parent, ...children) {
  const before = document.activeElement;
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  if (before && before !== document.body && document.activeElement === document.body) like(parent, before)?.focus({ preventScroll: true });
}

/** The element of the same `id`, or of the same kind, address and name. */
function like(parent, before) {
  if (before.id) return document.getElementById(before.id);
  const name = (one) => `${one.getAttribute("href") ?? ""} ${one.getAttribute("aria-label") ?? one.textContent}`;
  return [...parent.getElementsByTagName(before.localName)].find((one) => name(one) === name(before));
}

/** A table: columns are [title, row => cell, kind]; a kind is true for numbers, or a class, as "prose" for sentences. */
export function table(caption, columns, rows) {
  const kind = (one) => (one === true ? "number" : one || null);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("thead", {}, h("tr", {}, columns.map(([title, , one]) => h("th", { scope: "col", class: kind(one) }, title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([, cell, one]) => h("td", { class: kind(one) }, cell(row))))))));
}

/** Terms and what is said of them, without those of which nothing is. */
export function terms(pairs) {
  return h("dl", {}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value.length !== 0)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function card(title, ...children) {
  return h("section", { class: "card" }, h("h3", {}, title), children);
}

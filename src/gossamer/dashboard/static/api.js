// What the dashboard is asked. The cookie of the address that was opened says who asks.

export async function get(path) {
  return answered(await fetch(`/api/${path}`, { headers: { Accept: "application/json" } }));
}

export function order(key, word, fields = {}) {
  return ask(`crawls/${encodeURIComponent(key)}/${word}`, fields);
}

export async function ask(path, fields) {
  return answered(await fetch(`/api/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) }));
}

async function answered(response) {
  const type = response.headers.get("Content-Type") ?? "";
  const value = type.startsWith("application/json") ? await response.json() : { error: (await response.text()).trim() };
  if (!response.ok) throw new Error(value.error ?? response.statusText);
  return value;
}

const AGAIN = 3_000;

/** How a crawl stands, again and again; returns what ends it. */
export function watch(key, told, trouble) {
  let source = null, timer = 0;
  const open = () => {
    source = new EventSource(`/api/crawls/${encodeURIComponent(key)}/events`);
    source.addEventListener("standing", (event) => told(JSON.parse(event.data)));
    source.addEventListener("trouble", (event) => trouble(JSON.parse(event.data).error));
    source.onerror = () => {
      trouble("The dashboard does not answer; it is asked again.");
      // A browser tries again where the line is cut, but not where it was refused.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN);
    };
  };
  open();
  return () => { clearTimeout(timer); source.close(); };
}

// Figures for people, written as `gossamer status` writes them.

export const count = (number) => Number(number ?? 0).toLocaleString("en-US");
export const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export function bytes(number) {
  for (const [limit, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (Math.abs(number) >= limit) return `${(number / limit).toFixed(1)} ${unit}`;
  }
  return `${Math.round(number)} B`;
}

export function seconds(number) {
  if (number >= 3600) return `${Math.floor(number / 3600)} h ${String(Math.floor((number % 3600) / 60)).padStart(2, "0")} min`;
  if (number >= 60) return `${Math.floor(number / 60)} min ${String(Math.floor(number % 60)).padStart(2, "0")} s`;
  return number >= 1 || number === 0 ? `${number.toFixed(1)} s` : `${Math.round(number * 1000)} ms`;
}

export const percent = (share) => `${Math.round(share * 100)}%`;
export const ranked = (counts) => Object.entries(counts ?? {}).sort(([, a], [, b]) => b - a);

/** Why something waits, in words. */
export const WAITS = {
  paused: "the crawl is paused", disk_full: "the disk is full", network_down: "our own network seems down",
  retries: "pages are tried again", unreachable: "hosts do not answer", dns_failed: "host names have no address",
  refusals: "hosts asked for a pause", robots_unreachable: "robots.txt is out of reach",
  delay: "hosts are left alone between requests", look_ups: "names are being looked up", slow_pages: "pages take long",
  set_aside: "URLs look like parts of traps",
};

/** Why a host is asked no more often, in words. */
export const DELAYS = {
  setting: "the setting", latency: "the time that its answers take", robots: "its robots.txt", errors: "its errors",
  refusals: "its requests for a pause", processor: "an order of a processor",
};

/** An instant, given in seconds since the epoch. */
export const stamp = (instant) => new Date(instant * 1000).toLocaleString();

/** An instant as the tables have it, which is in UTC. */
export const moment = (text) => (text ? new Date(`${text.replace(" ", "T").replace(/Z$/, "")}Z`).toLocaleString() : "");

/** What a unit says of itself, without the marks that documentation of code has. */
export const prose = (text) => text.replace(/:\w+:`~?/g, "").replaceAll("`", "");

export const SEVERITIES = { halt: "stands still", loss: "pages missing", slow: "slow", note: "to know" };

/** What the page shows, kept in the URL's fragment so that a link brings it back. */

export const COUNTS = [5, 10, 20, 50, 100];

const DEFAULTS = {
  user: null,
  /** Epoch milliseconds; null until the user's history tells when the last event was. */
  at: null,
  n: 10,
  excludeSeen: true,
  withheld: false,
  scale: "linear",
  /** A head's number from 0, or null for the mean over heads. */
  head: null,
};

/** The state a fragment describes; whatever it leaves out or garbles has its default. */
export function readState(fragment) {
  const query = new URLSearchParams(fragment.replace(/^#/, ""));
  const at = Date.parse(query.get("query_time") ?? "");
  const n = Number(query.get("n"));
  const head = Number.parseInt(query.get("head") ?? "", 10);
  return {
    user: query.get("user") || DEFAULTS.user,
    at: Number.isNaN(at) ? DEFAULTS.at : at,
    n: Number.isInteger(n) && n >= 1 && n <= 500 ? n : DEFAULTS.n,
    excludeSeen: query.get("exclude_seen") !== "false",
    withheld: query.get("query_time_withheld") === "true",
    scale: query.get("scale") === "log" ? "log" : DEFAULTS.scale,
    head: head >= 1 ? head - 1 : DEFAULTS.head,
  };
}

/** The fragment that describes a state, in the words of the API. */
export function writeState(state) {
  const query = new URLSearchParams();
  if (state.user !== null) query.set("user", state.user);
  if (state.at !== null) query.set("query_time", new Date(state.at).toISOString());
  if (state.n !== DEFAULTS.n) query.set("n", state.n);
  if (!state.excludeSeen) query.set("exclude_seen", "false");
  if (state.withheld) query.set("query_time_withheld", "true");
  if (state.scale !== DEFAULTS.scale) query.set("scale", state.scale);
  if (state.head !== null) query.set("head", state.head + 1);
  return `#${query}`;
}

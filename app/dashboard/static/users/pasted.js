/** A history that is pasted rather than stored: reading it, and carrying it in a link. */

const EVENT_FIELDS = ["item_id", "timestamp", "action"];
/** Of a request body, what this view can ask about. */
const ASKED_FIELDS = ["history", "query_time", "n", "exclude_seen", "query_time_withheld"];
/** What a body may say as well without meaning anything else here. */
const MEANINGLESS_FIELDS = ["user_id", "explain", "explain_item_id"];
const WITH_OFFSET = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;
const MOST_IN_A_LINK = { events: 50, characters: 4000 };

/** A text that is no history; its message says the rule, what broke it and the remedy. */
export class NotAHistory extends Error {}

/**
 * What a pasted text asks: `{history, asked, leftOut}`. The text is a JSON list of events
 * `{item_id, timestamp, action?}`, or a whole body of `POST /v1/recommendations` with one; `asked`
 * holds the other fields of the body that this view keeps, `leftOut` the names of those it cannot.
 *
 * Throws `NotAHistory`.
 */
export function readPasted(text) {
  const said = parsed(text);
  const isBody = !Array.isArray(said);
  const events = isBody ? said.history : said;
  if (!Array.isArray(events)) {
    throw new NotAHistory(
      "a request body has its events in the field history, but this one has none there; paste a " +
        "body with a history, or the list of events alone",
    );
  }
  if (events.length === 0) {
    throw new NotAHistory("a history has at least one event, but this list is empty; add one");
  }
  events.forEach(checkEvent);
  if (!isBody) return { history: events, asked: {}, leftOut: [] };
  if (said.merge === true) {
    throw new NotAHistory(
      "a pasted history stands alone, but merge is true; leave it out, or open the user instead",
    );
  }
  return { history: events, ...asked(said) };
}

/** The events of a pasted history as this view shows them: oldest first, each of them once. */
export function eventsOf(history) {
  const known = new Map();
  for (const { item_id: itemId, timestamp, action = null } of history) {
    const at = instantOf(timestamp);
    known.set(JSON.stringify([itemId, at, action]), { itemId, at, action });
  }
  return [...known.values()].sort((one, other) => one.at - other.at);
}

/** A field of the permalink: a history, which only a small one's link carries. */
export const pastedHistory = () => ({
  defaultValue: null,
  read(said) {
    try {
      return readPasted(said).history;
    } catch {
      return undefined;
    }
  },
  write: (history) => (fitsInALink(history) ? JSON.stringify(history) : null),
});

/** Whether a link to a history carries it. */
export const fitsInALink = (history) =>
  history.length <= MOST_IN_A_LINK.events &&
  JSON.stringify(history).length <= MOST_IN_A_LINK.characters;

function parsed(text) {
  let said;
  try {
    said = JSON.parse(text);
  } catch (error) {
    throw new NotAHistory(`a history is JSON, but: ${error.message}; check brackets and commas`);
  }
  if (typeof said !== "object" || said === null) {
    throw new NotAHistory(
      `a history is a list of events or a request body, but this is ${JSON.stringify(said)}; ` +
        "begin with [ or {",
    );
  }
  return said;
}

function checkEvent(event, place) {
  const name = `event ${place + 1}`;
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new NotAHistory(
      `an event is an object with item_id and timestamp, but ${name} is ${told(event)}; ` +
        'write it as {"item_id": "…", "timestamp": "2011-12-09T12:50:00Z"}',
    );
  }
  const other = Object.keys(event).find((field) => !EVENT_FIELDS.includes(field));
  if (other !== undefined) {
    throw new NotAHistory(
      `an event has the fields ${EVENT_FIELDS.join(", ")}, but ${name} has ${told(other)}; leave it out`,
    );
  }
  const { item_id: itemId, timestamp, action = null } = event;
  if (typeof itemId !== "string" || itemId === "") {
    throw new NotAHistory(
      `an item_id is a text, but that of ${name} is ${told(itemId)}; put it in quotation marks`,
    );
  }
  if (Number.isNaN(instantOf(timestamp))) {
    throw new NotAHistory(
      "a timestamp is a text such as 2011-12-09T12:50:00Z, with its offset from UTC, or epoch " +
        `seconds, but that of ${name} is ${told(timestamp)}; write it as one of these`,
    );
  }
  if (action !== null && (typeof action !== "string" || action === "")) {
    throw new NotAHistory(
      `an action is a text or left out, but that of ${name} is ${told(action)}; put it in ` +
        "quotation marks, or leave it out",
    );
  }
}

/** The rest of a body, in the kinds of values that the state of the view has. */
function asked(body) {
  const kept = {};
  const at = instantOf(body.query_time);
  if (!Number.isNaN(at)) kept.query_time = at;
  if (Number.isInteger(body.n) && body.n >= 1 && body.n <= 500) kept.n = body.n;
  for (const name of ["exclude_seen", "query_time_withheld"]) {
    if (typeof body[name] === "boolean") kept[name] = body[name];
  }
  const known = new Set([...ASKED_FIELDS, ...MEANINGLESS_FIELDS, "merge"]);
  const unclear = ASKED_FIELDS.slice(1).filter((name) => (body[name] ?? null) !== null && !(name in kept));
  const leftOut = Object.keys(body).filter((name) => !known.has(name));
  return { asked: kept, leftOut: [...leftOut, ...unclear] };
}

/** Milliseconds since 1970 of an instant as the API takes it; NaN for anything else. */
function instantOf(said) {
  if (typeof said === "number") return Math.floor(said * 1000);
  if (typeof said === "string" && WITH_OFFSET.test(said)) return Date.parse(said.replace(" ", "T").toUpperCase());
  return NaN;
}

/** A value as it was pasted, as far as it is worth reading. */
function told(value) {
  const text = value === undefined ? "missing" : JSON.stringify(value);
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}

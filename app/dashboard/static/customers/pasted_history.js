// @ts-check
/** A pasted history: the dialog that takes it, its validation, and its place in the link. */

import { pluralize } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import { fromEpochSeconds, parseInstant } from "../shell/instants.js";

const EVENT_FIELDS = ["item_id", "timestamp", "action"];
/** The fields of a request body that the page supports. */
const SUPPORTED_FIELDS = ["history", "query_time", "n", "exclude_seen", "query_time_withheld"];
/** Fields without an effect on this page. */
const IGNORED_FIELDS = ["user_id", "explain", "explain_item_id"];
const MOST_IN_A_LINK = { events: 50, characters: 4000 };
const EXAMPLE = `[
  {"item_id": "sku-0002", "timestamp": "2011-06-01T10:00:00Z", "action": "purchase"},
  {"item_id": "sku-0138", "timestamp": "2011-11-24T08:30:00Z"}
]`;

/** A text that is no history; the message has the rule, the value and the remedy. */
class InvalidHistory extends Error {}

/** @typedef {{history: any[], settings: Record<string, any>, leftOut: string[]}} Pasted */

/** The dialog behind the button `#paste`. */
export class PasteDialog {
  #dialog = document.createElement("dialog");
  #use;

  /** @param {(pasted: Pasted) => void} use called with a valid history */
  constructor(use) {
    this.#use = use;
    this.#dialog.id = "paste-dialog";
    this.#dialog.className = "card";
    this.#dialog.setAttribute("aria-labelledby", "paste-heading");
    document.body.append(this.#dialog);
    this.#render("");
    byId("paste").addEventListener("click", () => {
      this.#render("");
      this.#dialog.showModal();
      byId("pasted").focus();
    });
  }

  #render(refusal) {
    render(
      html`<form method="dialog" @submit=${(event) => this.#submit(event)}>
        <h2 id="paste-heading">Paste a history</h2>
        <p id="pasted-about" class="note">
          A JSON list of events with item_id, timestamp and optionally action, or a whole request
          body of POST /v1/recommendations. It is sent with each request; nothing is stored.
        </p>
        <label for="pasted">History as JSON</label>
        <textarea id="pasted" rows="12" spellcheck="false" placeholder=${EXAMPLE}
          aria-describedby="pasted-about pasted-refused"></textarea>
        <p id="pasted-refused" class="refusal" role="alert">${refusal}</p>
        <div class="buttons">
          <button type="submit" class="main">Show it</button>
          <button type="button" @click=${() => this.#dialog.close()}>Cancel</button>
        </div>
      </form>`,
      this.#dialog,
    );
  }

  #submit(event) {
    event.preventDefault();
    try {
      const pasted = parsePasted(byId("pasted").value);
      this.#dialog.close();
      this.#use(pasted);
    } catch (error) {
      if (!(error instanceof InvalidHistory)) throw error;
      this.#render(error.message);
      byId("pasted").focus();
    }
  }
}

/** Shows that a pasted history is on display, whether its link holds it, and the fields left out. */
export function showPasteNote(history, leftOut = []) {
  const note = byId("paste-note");
  if (history === null) {
    note.textContent = "";
    return;
  }
  const link = fitsInLink(history)
    ? "The link to this page contains it."
    : "The link to this page does not contain it: a link holds at most 50 events and 4,000 characters.";
  const ignored = leftOut.length
    ? ` Left out, as this page does not support it: ${leftOut.join(", ")}.`
    : "";
  note.textContent = `Shown: a pasted history of ${pluralize(history.length, "event")}, not stored. ${link}${ignored}`;
}

/** The events of a pasted history, oldest first, without duplicates. */
export function pastedEvents(history) {
  const known = new Map();
  for (const { item_id: itemId, timestamp, action = null } of history) {
    const at = parseTimestamp(timestamp);
    known.set(JSON.stringify([itemId, at, action]), { itemId, at, action });
  }
  return [...known.values()].sort((one, other) => one.at - other.at);
}

/**
 * A field of the permalink: a history; only a small one is written.
 *
 * @returns {import("../shell/permalink.js").Field}
 */
export const pastedHistory = () => ({
  defaultValue: null,
  read(text) {
    try {
      return parsePasted(text).history;
    } catch {
      return undefined;
    }
  },
  write: (history) => (fitsInLink(history) ? JSON.stringify(history) : null),
});

const fitsInLink = (history) =>
  history.length <= MOST_IN_A_LINK.events &&
  JSON.stringify(history).length <= MOST_IN_A_LINK.characters;

/**
 * Parses a JSON list of events `{item_id, timestamp, action?}`, or a body of
 * `POST /v1/recommendations` with a history.
 *
 * @param {string} text
 * @returns {Pasted} `settings` are the other supported fields of a body, `leftOut` the names of the
 *   unsupported ones
 * @throws {InvalidHistory}
 */
function parsePasted(text) {
  const content = parseJson(text);
  const isBody = !Array.isArray(content);
  const events = isBody ? content.history : content;
  if (!Array.isArray(events)) {
    throw new InvalidHistory(
      "a request body has its events in the field history, but this one has none there; paste a " +
        "body with a history, or the list of events alone",
    );
  }
  if (events.length === 0) {
    throw new InvalidHistory("a history has at least one event, but this list is empty; add one");
  }
  events.forEach(checkEvent);
  if (!isBody) return { history: events, settings: {}, leftOut: [] };
  if (content.merge === true) {
    throw new InvalidHistory(
      "a pasted history stands alone, but merge is true; leave it out, or open the user instead",
    );
  }
  return { history: events, ...parseSettings(content) };
}

function parseJson(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new InvalidHistory(`a history is JSON, but: ${error.message}; check brackets and commas`);
  }
  if (typeof content !== "object" || content === null) {
    throw new InvalidHistory(
      `a history is a list of events or a request body, but this is ${JSON.stringify(content)}; ` +
        "begin with [ or {",
    );
  }
  return content;
}

function checkEvent(event, index) {
  const name = `event ${index + 1}`;
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new InvalidHistory(
      `an event is an object with item_id and timestamp, but ${name} is ${abbreviate(event)}; ` +
        'write it as {"item_id": "…", "timestamp": "2011-12-09T12:50:00Z"}',
    );
  }
  const other = Object.keys(event).find((field) => !EVENT_FIELDS.includes(field));
  if (other !== undefined) {
    throw new InvalidHistory(
      `an event has the fields ${EVENT_FIELDS.join(", ")}, but ${name} has ${abbreviate(other)}; leave it out`,
    );
  }
  const { item_id: itemId, timestamp, action = null } = event;
  if (typeof itemId !== "string" || itemId === "") {
    throw new InvalidHistory(
      `an item_id is a text, but that of ${name} is ${abbreviate(itemId)}; put it in quotation marks`,
    );
  }
  if (Number.isNaN(parseTimestamp(timestamp))) {
    throw new InvalidHistory(
      "a timestamp is a text such as 2011-12-09T12:50:00Z, with its offset from UTC, or epoch " +
        `seconds, of the years 1 to 9999, but that of ${name} is ${abbreviate(timestamp)}; write it as one of these`,
    );
  }
  if (action !== null && (typeof action !== "string" || action === "")) {
    throw new InvalidHistory(
      `an action is a text or left out, but that of ${name} is ${abbreviate(action)}; put it in ` +
        "quotation marks, or leave it out",
    );
  }
}

/** The fields of a body other than the history, with the types of the page's state. */
function parseSettings(body) {
  const settings = {};
  const at = parseTimestamp(body.query_time);
  if (!Number.isNaN(at)) settings.query_time = at;
  if (Number.isInteger(body.n) && body.n >= 1 && body.n <= 100) settings.n = body.n;
  for (const name of ["exclude_seen", "query_time_withheld"]) {
    if (typeof body[name] === "boolean") settings[name] = body[name];
  }
  const known = new Set([...SUPPORTED_FIELDS, ...IGNORED_FIELDS, "merge"]);
  const invalid = SUPPORTED_FIELDS.slice(1).filter(
    (name) => (body[name] ?? null) !== null && !(name in settings),
  );
  const unsupported = Object.keys(body).filter((name) => !known.has(name));
  return { settings, leftOut: [...unsupported, ...invalid] };
}

/** Milliseconds since 1970 of a timestamp as the API takes it; NaN for anything else. */
function parseTimestamp(value) {
  if (typeof value === "number") return fromEpochSeconds(value);
  return typeof value === "string" ? parseInstant(value) : NaN;
}

/** A value as JSON, at most 60 characters. */
function abbreviate(value) {
  const text = value === undefined ? "missing" : JSON.stringify(value);
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}

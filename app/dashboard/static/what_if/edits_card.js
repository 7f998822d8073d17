// @ts-check
/**
 * The card "Edits": the list of edits, each with an undo button, the form that adds an event, and the
 * container of the query time control.
 */

import { live, repeat } from "../shell/directives.js";
import { formatDuration, formatInstant, parseFieldValue, pluralize, toFieldValue } from "../shell/format.js";
import { html, render } from "../shell/html.js";
import { ItemSearch } from "../widgets/item_search.js";
import { eventKey, findRow } from "./edits.js";
import { fromMilliseconds, toMilliseconds } from "./exact_instants.js";

/**
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./edits.js").ActionChange} ActionChange
 * @typedef {import("./edits.js").Edit} Edit
 * @typedef {import("./edits.js").HistoryEvent} HistoryEvent
 * @typedef {import("./edits.js").Row} Row
 * @typedef {import("./edits.js").Side} Side
 *
 * @typedef {object} EditsView
 * @property {Edit[]} edits
 * @property {Row[]} rows with weights
 * @property {Map<string, string | null>} titles
 * @property {number} begin query time before the edits
 * @property {Model | null} model null while unknown
 */

const LATEST = "9999-12-31T23:59:59";

export class EditsCard {
  #root;
  #handlers;
  /** @type {EditsView} */
  #shown = { edits: [], rows: [], titles: new Map(), begin: 0, model: null };
  /** @type {string | null} */
  #limit = null;
  /** @type {string | null} */
  #refusal = null;
  /** @type {(string | null)[]} */
  #actions = [];
  /** @type {{item_id: string, title: string | null} | null} */
  #item = null;
  #isTimed = false;
  #search;

  /**
   * @param {HTMLElement} root
   * @param {object} handlers
   * @param {(index: number) => void} handlers.undo undoes the edit at an index of the list
   * @param {() => void} handlers.reset undoes all edits
   * @param {(event: HistoryEvent, title: string | null) => string | null} handlers.add adds an event;
   *   returns why it cannot, or null
   */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    this.#render();
    this.#search = new ItemSearch(this.#field("add-item"), {
      choose: (/** @type {any} */ item) => {
        this.#item = item;
        this.#refuse(null);
        this.#field("add-action").focus();
      },
    });
  }

  /**
   * Starts with another history.
   * @param {(string | null)[]} actions of the history, the most frequent first
   */
  begin(actions) {
    this.#actions = actions;
    this.#field("add-action").value = actions[0] ?? "";
    this.#isTimed = false;
    this.#clear();
    this.#refuse(null);
  }

  /** @param {EditsView} shown */
  show(shown) {
    const buttons = [...this.#root.querySelectorAll("#edits button")];
    const index = buttons.indexOf(/** @type {Element} */ (document.activeElement));
    this.#shown = shown;
    this.#render();
    if (index >= 0 && !this.#root.contains(document.activeElement)) this.#focusNear(index);
  }

  /**
   * Sets the instant of the event to add to the query time, unless the user has set another.
   * @param {number} queryTime
   */
  followQueryTime(queryTime) {
    if (!this.#isTimed) this.#field("add-when").value = toFieldValue(queryTime);
  }

  /**
   * Shows that the limit of edits is reached; null to hide it.
   * @param {string | null} sentence
   */
  showLimit(sentence) {
    this.#limit = sentence;
    this.#render();
  }

  /** An undo button is gone after its click: focus its neighbour, or the heading. */
  #focusNear(/** @type {number} */ index) {
    const buttons = this.#root.querySelectorAll("#edits button");
    const next = buttons[Math.min(index, buttons.length - 1)] ?? this.#heading;
    /** @type {HTMLElement} */ (next).focus();
  }

  get #heading() {
    return /** @type {HTMLElement} */ (this.#root.querySelector("h2"));
  }

  /** @returns {HTMLInputElement} */
  #field(/** @type {string} */ id) {
    return /** @type {HTMLInputElement} */ (this.#root.querySelector(`#${id}`));
  }

  #reset() {
    this.#handlers.reset();
    this.#heading.focus();
  }

  #submit(/** @type {Event} */ event) {
    event.preventDefault();
    this.#refuse(this.#add());
    if (this.#refusal !== null) return;
    this.#clear();
    this.#field("add-item").focus();
  }

  /** Returns why the event cannot be added, or null. */
  #add() {
    if (this.#item === null) {
      this.#field("add-item").focus();
      return "an event needs an item: choose one from the list, or its last line to take an id as typed";
    }
    const at = parseFieldValue(this.#field("add-when").value);
    if (at === null) {
      this.#field("add-when").focus();
      return "an event needs an instant: fill in the day and the time";
    }
    const { item_id: itemId, title } = this.#item;
    const action = this.#field("add-action").value.trim() || null;
    return this.#handlers.add({ itemId, action, at: fromMilliseconds(at) }, title);
  }

  #clear() {
    this.#item = null;
    this.#search.clear();
  }

  #refuse(/** @type {string | null} */ why) {
    this.#refusal = why;
    this.#render();
  }

  #render() {
    render(this.#template(), this.#root);
  }

  #template() {
    const { edits } = this.#shown;
    const actions = this.#actions.filter((action) => action !== null);
    return html`
      <div class="heading-row">
        <h2 id="edits-heading" tabindex="-1">Edits</h2>
        <button type="button" class="plain" id="reset" ?disabled=${edits.length === 0}
                @click=${() => this.#reset()}>Reset</button>
      </div>
      <p class="note">Changes to the history and to the point in time, each of which can be undone.</p>
      <p id="no-edits" class="note" ?hidden=${edits.length > 0}>
        None yet: add an event, or edit those of the history.
      </p>
      <ol id="edits" class="edits">
        ${repeat(edits, identity, (edit, index) => this.#entry(edit, index))}
      </ol>
      <p id="edits-full" class="caution" role="status" ?hidden=${this.#limit === null}>${this.#limit}</p>

      <form id="add-form" class="add" aria-labelledby="add-heading"
            @submit=${(/** @type {Event} */ event) => this.#submit(event)}>
        <h3 id="add-heading">Add an event</h3>
        <div class="field wide">
          <label for="add-item">Item, by its title or id</label>
          <input id="add-item" type="text" maxlength="256" @input=${() => (this.#item = null)}>
        </div>
        <div class="field">
          <label for="add-action">Action</label>
          <input id="add-action" type="text" maxlength="64" list="known-actions" spellcheck="false"
                 placeholder="none">
          <datalist id="known-actions">
            ${actions.map((action) => html`<option .value=${live(action)}></option>`)}
          </datalist>
        </div>
        <div class="field">
          <label for="add-when">When (UTC)</label>
          <input id="add-when" type="datetime-local" step="1" max=${LATEST}
                 @input=${() => (this.#isTimed = true)}>
        </div>
        <button type="submit" class="main">Add event</button>
        <p id="add-refused" class="refusal" role="alert" ?hidden=${this.#refusal === null}>${this.#refusal}</p>
      </form>

      <div class="query-time" role="group" aria-labelledby="query-time-label">
        <div class="query-time-row">
          <label id="query-time-label" for="query-time-field">Point in time after (UTC)</label>
          <input id="query-time-field" type="datetime-local" step="1" max=${LATEST}>
          <span id="since-last" class="note"></span>
        </div>
        <input id="query-time-slider" type="range" min="0" max="1000" step="1" aria-label="Point in time after">
        <div class="ends note"><span id="slider-first"></span><span id="slider-last"></span></div>
        <div class="steps" id="query-time-steps"></div>
      </div>`;
  }

  /**
   * @param {Edit} edit
   * @param {number} index
   */
  #entry(edit, index) {
    const { rows, titles, begin, model } = this.#shown;
    const row = findRow(rows, edit);
    const itemId = "of" in edit ? edit.of.itemId : edit.kind === "add" ? edit.itemId : "";
    const size = edit.kind === "basket" ? rows.filter((one) => one.before?.at === edit.at).length : 0;
    const sentence = describeEdit(edit, titles.get(itemId) || itemId, begin, size);
    const remarks = remarksOn(edit, row, model);
    return html`<li>
      <span>${sentence}${remarks.map((remark) => html`<span class="remark block">${remark}</span>`)}</span>
      <button type="button" class="plain" aria-label=${`Undo: ${sentence}`}
              @click=${() => this.#handlers.undo(index)}>Undo</button>
    </li>`;
  }
}

/** @param {Edit} edit */
function identity(edit) {
  if ("of" in edit) return edit.kind + eventKey(edit.of);
  if (edit.kind === "add") return edit.number;
  return edit.kind === "basket" ? `basket ${edit.at}` : edit.kind;
}

/** @param {string} at */
const formatEventTime = (at) => `${formatInstant(toMilliseconds(at))} UTC`;

/**
 * @param {Edit} edit
 * @param {string} name of its item
 * @param {number} begin query time before the edits
 * @param {number} size events of a removed basket
 */
function describeEdit(edit, name, begin, size) {
  switch (edit.kind) {
    case "add":
      return `Added ${name}${edit.action === null ? "" : `, ${edit.action},`} at ${formatEventTime(edit.at)}`;
    case "basket":
      return `Removed the basket of ${formatEventTime(edit.at)} (${pluralize(size, "event")})`;
    case "remove":
      return `Removed ${name} of ${formatEventTime(edit.of.at)}`;
    case "move": {
      const by = toMilliseconds(edit.at) - toMilliseconds(edit.of.at);
      const [from, to] = [edit.of.at, edit.at].map(formatEventTime);
      return `Moved ${name} by ${signed(by)}, from ${from} to ${to}`;
    }
    case "action":
      return `Changed the action of ${name} from ${quote(edit.of.action)} to ${quote(edit.action)}`;
    default:
      return `Moved the point in time by ${signed(edit.at - begin)}, to ${formatInstant(edit.at)} UTC`;
  }
}

/** @type {Record<string, string>} */
const UNREAD = {
  later: "lies after the point in time: it is not read",
  unknown: "the model does not know this item: it cannot read the event",
  duplicate: "the history holds this very event already: it counts once",
  old: "the model reads only the most recent events, and has newer ones: this one is not read",
};

/** @param {Side} side */
const whyUnread = ({ status, action }) =>
  status === "ignored"
    ? `this model leaves out events with the action ${quote(action)}: it is not read`
    : UNREAD[status ?? ""];

/** @param {Side} side */
const isUnread = ({ status }) => status !== null && status !== undefined && status !== "read";

/**
 * Sentences on what an edit cannot change; often none.
 * @param {Edit} edit
 * @param {Row | undefined} row with weights; undefined where the history lacks the event
 * @param {Model | null} model
 */
function remarksOn(edit, row, model) {
  if (edit.kind === "query_time" || (edit.kind === "basket" && row !== undefined)) return [];
  if (row === undefined) return ["this event is not in the stored history: the edit does nothing"];
  const { before, after } = row;
  if (edit.kind === "remove") {
    return before && isUnread(before) ? [`it was not read before: ${whyUnread(before)}`] : [];
  }
  if (after === null) return [];
  const remarks = edit.kind === "action" && model !== null ? remarksOnAction(edit, model) : [];
  const isExplained = edit.kind === "action" && after.status === "ignored";
  if (isUnread(after) && !isExplained) remarks.push(whyUnread(after));
  return remarks;
}

/**
 * @param {ActionChange} edit
 * @param {Model} model
 */
function remarksOnAction({ of: { action: was }, action: is }, { manifest: { recommender } }) {
  /** @type {Set<string | null>} */
  const ignored = new Set(recommender.ignored_actions);
  if (ignored.has(was) && ignored.has(is)) {
    return ["this model leaves out events with either action: no score can change"];
  }
  const leftOut = (/** @type {string | null} */ action) =>
    `this model leaves out events with the action ${quote(action)}`;
  if (ignored.has(is)) return [`${leftOut(is)}: it is not read now`];
  if (ignored.has(was)) return [`${leftOut(was)}: it is read only now`];
  if (recommender.actions.length === 0) return ["this model does not read actions: no score can change"];
  const known = new Set(recommender.actions);
  if (is === null || known.has(is)) return [];
  const effect = was === null || !known.has(was) ? ": no score can change" : "";
  return [`this model does not know the action ${quote(is)}, and reads it as none${effect}`];
}

/**
 * How a model reads actions, where it does not read all of them.
 * @param {Model} model
 */
export function describeActions({ manifest: { recommender } }) {
  const ignored = recommender.ignored_actions.map(quote).join(", ");
  const sentences = [];
  if (recommender.actions.length === 0) sentences.push("This model does not read actions.");
  if (ignored) sentences.push(`It leaves out events with the action ${ignored}.`);
  return sentences.join(" ");
}

/** @param {string | null} action */
const quote = (action) => (action === null ? "none" : `“${action}”`);

/** @param {number} duration in milliseconds */
const signed = (duration) => `${duration < 0 ? "−" : "+"}${formatDuration(Math.abs(duration))}`;

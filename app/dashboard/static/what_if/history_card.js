// @ts-check
/**
 * The card "History": every event with its attention weight before and after the edits, and the
 * controls that remove, restore, move or relabel it.
 */

import { live, repeat } from "../shell/directives.js";
import { formatInstant, formatPercent, parseFieldValue, pluralize, toFieldValue } from "../shell/format.js";
import { html, itemName, nothing, render } from "../shell/html.js";
import { STEPS } from "../widgets/query_time.js";
import { STATUS_LABELS } from "./data.js";
import { isEdited } from "./edits.js";
import { fromMilliseconds, shift, toMilliseconds } from "./exact_instants.js";

/**
 * @typedef {import("./edits.js").Row} Row
 * @typedef {import("./edits.js").Side} Side
 */

const SHOWN = 100;
const COLUMNS = 4;

/** The side that an event has now, or had until it was removed. */
const current = (/** @type {Row} */ row) => /** @type {Side} */ (row.after ?? row.before);
const instant = (/** @type {Row} */ row) => toMilliseconds(current(row).at);
const weight = (/** @type {Row} */ row) => Math.max(row.before?.weight ?? -1, row.after?.weight ?? -1);

/** @type {Record<string, (one: Row, other: Row) => number>} */
const ORDERS = {
  time: (one, other) => instant(other) - instant(one),
  weight: (one, other) => weight(other) - weight(one) || instant(other) - instant(one),
};

export class HistoryCard {
  #root;
  #handlers;
  #order = "time";
  #isWhole = false;
  /** @type {Row[]} */
  #rows = [];
  /** @type {Row[]} */
  #sorted = [];
  /** @type {Map<string, string | null>} */
  #titles = new Map();
  /** @type {string | null} the key of the row whose editor is open */
  #editing = null;

  /**
   * @param {HTMLElement} root
   * @param {object} handlers
   * @param {(row: Row) => void} handlers.remove
   * @param {(at: string) => void} handlers.removeBasket
   * @param {(row: Row) => void} handlers.restore
   * @param {(row: Row, at: string) => void} handlers.move
   * @param {(row: Row, action: string | null) => void} handlers.changeAction
   */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    this.#render();
  }

  /** Starts with another history. */
  begin() {
    this.#isWhole = false;
    this.#editing = null;
  }

  /**
   * @param {Row[]} rows with weights
   * @param {Map<string, string | null>} titles
   */
  show(rows, titles) {
    this.#rows = rows;
    this.#titles = titles;
    if (!rows.some((row) => row.key === this.#editing && row.after !== null)) this.#editing = null;
    this.#render();
  }

  /**
   * @param {Row} row
   * @param {Event} event
   */
  #remove(row, event) {
    // The row of an added event disappears: focus a row that stays.
    if (row.added) {
      const line = /** @type {HTMLElement} */ (event.target).closest("tr");
      const other = line?.nextElementSibling ?? line?.previousElementSibling;
      const next = other?.querySelector("button[data-do=edit]") ?? this.#root.querySelector("h2");
      /** @type {HTMLElement} */ (next).focus();
    }
    this.#handlers.remove(row);
  }

  #open(/** @type {Row} */ row) {
    this.#editing = row.key;
    this.#render();
    /** @type {HTMLElement} */ (this.#root.querySelector(".editor input")).focus();
  }

  #close() {
    const line = this.#root.querySelector(".editing")?.previousElementSibling;
    this.#editing = null;
    this.#render();
    /** @type {HTMLElement | null | undefined} */ (line?.querySelector("[data-do=edit]"))?.focus();
  }

  /** Sorts the rows, unless the editor has the focus: its row must not move while a field is typed into. */
  #sort() {
    const isTyping = this.#root.querySelector(".editor input:focus") !== null;
    if (!isTyping) return [...this.#rows].sort(ORDERS[this.#order]);
    const positions = new Map(this.#sorted.map((row, position) => [row.key, position]));
    const positionOf = (/** @type {Row} */ row) => positions.get(row.key) ?? positions.size;
    return [...this.#rows].sort((one, other) => positionOf(one) - positionOf(other));
  }

  #render() {
    const focused = document.activeElement;
    this.#sorted = this.#sort();
    render(this.#template(), this.#root);
    // An element that moved to another position has lost the focus.
    if (focused !== document.activeElement && this.#root.contains(focused)) {
      /** @type {HTMLElement} */ (focused).focus();
    }
  }

  #template() {
    const sorted = this.#sorted;
    // Edited events are shown wherever they stand.
    const shown = this.#isWhole ? sorted : sorted.filter((row, position) => position < SHOWN || isEdited(row));
    const sort = (/** @type {Event} */ { target }) => {
      this.#order = /** @type {HTMLSelectElement} */ (target).value;
      this.#render();
    };
    const showAll = () => {
      this.#isWhole = true;
      this.#render();
    };
    return html`
      <div class="heading-row">
        <h2 id="history-heading" tabindex="-1">History</h2>
        <div class="controls">
          <label>Order <select id="order" @change=${sort}>
            <option value="time">newest first</option>
            <option value="weight">most weighted first</option>
          </select></label>
        </div>
      </div>
      <p class="note">The events, with the attention weight of each before and after the edits.</p>
      <p id="no-events" class="note" ?hidden=${sorted.length > 0}>No events: add one above.</p>
      <div class="scroller" tabindex="0" role="region" aria-label="Events of the history">
        <table class="history">
          <thead>
            <tr><th scope="col">Event</th>
                <th scope="col" class="number">Weight before</th>
                <th scope="col" class="number">after</th>
                <th scope="col"><span class="visually-hidden">Edit</span></th></tr>
          </thead>
          <tbody id="events">
            ${repeat(shown, ({ key }) => key, (row) => this.#row(row))}
          </tbody>
        </table>
      </div>
      <button type="button" class="plain" id="more-events" ?hidden=${shown.length === sorted.length}
              @click=${showAll}>Show all ${pluralize(sorted.length, "event")}</button>`;
  }

  #row(/** @type {Row} */ row) {
    const { key, itemId, before, after } = row;
    const title = this.#titles.get(itemId) ?? null;
    const name = title || itemId;
    const badge = before === null ? "added" : after === null ? "removed" : null;
    const isOpen = this.#editing === key && after !== null;
    const remove = after === null ? "Put back" : "Remove";
    return html`
      <tr data-key=${key} class=${after === null ? "gone" : before === null ? "new" : ""}>
        <td class="event">
          ${itemName(title, itemId)}${badge === null ? nothing : html`<span class="badge">${badge}</span>`}
          <span class="note block when">${changeOf(row, formatTime)}</span>
          <span class="note block action">${changeOf(row, ({ action }) => action ?? "no action")}</span>
        </td>
        <td class="number before">${formatWeight(before)}</td>
        <td class="number after">${formatWeight(after)}</td>
        <td class="does">
          <button type="button" class="plain" data-do="edit" aria-expanded=${String(isOpen)}
                  aria-label=${`Edit ${name}`} ?disabled=${after === null}
                  @click=${() => (isOpen ? this.#close() : this.#open(row))}>Edit</button>
          <button type="button" class="plain" data-do="remove" aria-label=${`${remove} ${name}`}
                  @click=${(/** @type {Event} */ event) =>
                    after === null ? this.#handlers.restore(row) : this.#remove(row, event)}>${remove}</button>
          ${this.#isFirstOfBasket(row) ? this.#basketButton(row) : nothing}
        </td>
      </tr>
      ${isOpen ? this.#editor(row, after, name) : nothing}`;
  }

  /** Whether a row is the first on display of a stored basket of several events, and not removed. */
  #isFirstOfBasket(/** @type {Row} */ row) {
    if (row.before === null || row.after === null) return false;
    const basket = this.#sorted.filter((one) => one.before?.at === row.before?.at && one.after !== null);
    return basket.length > 1 && basket[0] === row;
  }

  #basketButton(/** @type {Row} */ { before }) {
    const at = /** @type {Side} */ (before).at;
    const size = this.#rows.filter((one) => one.before?.at === at).length;
    return html`<button type="button" class="plain" data-do="remove-basket"
      aria-label=${`Leave out basket of ${size}, ${formatInstant(toMilliseconds(at))}`}
      @click=${() => this.#handlers.removeBasket(at)}>Leave out basket of ${size}</button>`;
  }

  /**
   * @param {Row} row
   * @param {Side} after
   * @param {string} name
   */
  #editor(row, { at, action }, name) {
    const { move, changeAction } = this.#handlers;
    const moveTo = (/** @type {Event} */ { target }) => {
      const chosen = parseFieldValue(/** @type {HTMLInputElement} */ (target).value);
      if (chosen !== null) move(row, fromMilliseconds(chosen));
    };
    const setAction = (/** @type {Event} */ { target }) =>
      changeAction(row, /** @type {HTMLInputElement} */ (target).value.trim() || null);
    const closeOnEscape = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") this.#close();
    };
    return html`
      <tr class="editing"><td colspan=${COLUMNS}>
        <div class="editor" role="group" aria-label=${`Edit ${name}`} @keydown=${closeOnEscape}>
          <label>When (UTC) <input type="datetime-local" class="edited-when" step="1"
            max="9999-12-31T23:59:59" @input=${moveTo}
            .value=${live(this.#typedInto(".edited-when") ?? toFieldValue(toMilliseconds(at)))}></label>
          <div class="steps" role="group" aria-label="Move by">
            ${STEPS.map(([words, by]) => html`
              <button type="button" @click=${() => move(row, shift(at, Number(by)))}>${words}</button>`)}
          </div>
          <label>Action <input type="text" class="edited-action" maxlength="64" spellcheck="false"
            list="known-actions" @change=${setAction}
            .value=${live(this.#typedInto(".edited-action") ?? action ?? "")}></label>
          <button type="button" class="plain" @click=${() => this.#close()}>Done</button>
        </div>
      </td></tr>`;
  }

  /** The text of a field that has the focus, which must not be overwritten; null for any other. */
  #typedInto(/** @type {string} */ selector) {
    const field = this.#root.querySelector(selector);
    return field !== null && field === document.activeElement
      ? /** @type {HTMLInputElement} */ (field).value
      : null;
  }
}

/** @param {Side} side */
const formatTime = ({ at }) => formatInstant(toMilliseconds(at));

/**
 * A property of an event, and its former value where an edit changed it.
 * @param {Row} row
 * @param {(side: Side) => string} format
 */
function changeOf({ before, after }, format) {
  if (before === null || after === null) return format(/** @type {Side} */ (after ?? before));
  const [was, is] = [format(before), format(after)];
  return was === is ? is : html`<del>${was}</del> <ins>${is}</ins>`;
}

/** @param {Side | null} side */
function formatWeight(side) {
  if (side === null) return "–";
  if (typeof side.weight === "number") return formatPercent(side.weight);
  const label = side.status === "read" ? "–" : (STATUS_LABELS[side.status ?? ""] ?? "…");
  return html`<span class="note why">${label}</span>`;
}

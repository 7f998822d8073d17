// @ts-check
/** The tables of the page: the top items of a response, and the events of the history. */

import { formatDuration, formatInstant, formatPercent } from "../shell/format.js";
import { byId, html, itemLink, nothing, render } from "../shell/html.js";
import { describeFallback, describeWarnings } from "../widgets/warnings.js";
import { scoreParts } from "./score_parts.js";

/** The card of top items: the items, how much of the history was used, fallback and warnings. */
export class TopItemsCard {
  /** @type {string[] | null} the ids that ranks are compared with */
  #before = null;
  /** @type {{at: number, ids: string[]} | null} */
  #ranked = null;
  /** Whether the model names the parts of its scores; a sweep does not return them. */
  #hasParts = false;

  /** Compares the next ranks with none. */
  clear() {
    this.#before = this.#ranked = null;
  }

  /**
   * Shows a response for an instant, with the change of each rank since the instant before.
   *
   * @param {any} answer
   * @param {number} at
   * @param {number} stored how many events there are up to the instant
   */
  show(answer, at, stored) {
    if (this.#ranked !== null && this.#ranked.at !== at) this.#before = this.#ranked.ids;
    const ids = answer.items.map((item) => item.item_id);
    this.#ranked = { at, ids };
    const ranks = this.#before && new Map(this.#before.map((id, index) => [id, index + 1]));
    byId("top-count").textContent = ids.length;
    if (answer.recommendation_id) this.#hasParts = answer.items.some((item) => item.parts);
    byId("parts-note").hidden = !this.#hasParts;
    render(
      answer.items.map((item) => itemRow(item, ranks, this.#hasParts)),
      byId("top-items"),
    );
    showBasis(answer, stored);
  }
}

function showBasis(answer, stored) {
  byId("history-used").textContent =
    `${answer.history_used} of ${stored} events up to the query time`;
  byId("fallback").textContent = describeFallback(answer.fallback);
  byId("fallback").classList.toggle("caution", answer.fallback !== null);
  const sentences = describeWarnings(answer.warnings, answer.unknown_item_ids);
  byId("warnings").classList.toggle("caution", sentences.length > 0);
  render(
    sentences.length ? sentences.map((sentence) => html`<p>${sentence}</p>`) : "none",
    byId("warnings"),
  );
}

function itemRow(item, ranks, hasParts) {
  const kind = item.categories.join(", ");
  return html`<tr data-item=${item.item_id}>
    <td class="number rank">${item.rank}${ranks && rankChange(item, ranks)}</td>
    <td>
      ${itemLink(item.title, item.item_id)}${kind ? html`<span class="note block">${kind}</span>` : nothing}
      ${hasParts && item.reason === "model" ? scoreParts(item.parts) : nothing}
    </td>
    <td class="number">
      ${formatScore(item)}${item.reason === "popular" ? html`<span class="badge">popular</span>` : nothing}
    </td>
  </tr>`;
}

/** How an item's rank has changed: a symbol, and words for screen readers. */
function rankChange(item, ranks) {
  const earlier = ranks.get(item.item_id);
  if (earlier === item.rank) return nothing;
  if (earlier === undefined) return badge("new", "new", " since the instant before");
  const change = earlier - item.rank;
  const [kind, symbol] = change > 0 ? ["up", "▴"] : ["down", "▾"];
  return badge(kind, `${symbol}${Math.abs(change)}`, `, ${kind} since the instant before`);
}

const badge = (kind, symbol, words) =>
  html`<span class="moved ${kind}">${symbol}<span class="visually-hidden">${words}</span></span>`;

// The score of a popular item is a count of events, that of the model a real number.
const formatScore = (item) =>
  item.reason === "popular" ? String(Math.round(item.score)) : item.score.toFixed(3);

const ORDERS = {
  // Unread events, which have no weight, come last.
  weight: (one, other) => (other.weight ?? -1) - (one.weight ?? -1) || other.at - one.at,
  age: (one, other) => other.at - one.at,
};
const WITHOUT_WEIGHT = { later: "after the query time", unread: "not read" };

/** The card of the history: every event with its age and weight. */
export class HistoryCard {
  #body = byId("history-events");
  #order = "weight";
  #events = [];
  #items = new Map();

  /** @param {(event: any) => void} point called with the event under the pointer, or null */
  constructor(point) {
    for (const button of /** @type {NodeListOf<HTMLElement>} */ (
      document.querySelectorAll("[data-order]")
    )) {
      button.addEventListener("click", () => {
        this.#order = button.dataset.order ?? "weight";
        this.#render();
      });
    }
    this.#body.addEventListener("pointerover", (hover) => {
      const row = hover.target.closest("tr");
      point(row ? this.#events[Number(row.dataset.index)] : null);
    });
    this.#body.addEventListener("pointerleave", () => point(null));
  }

  /** Shows events as `weightedHistory` returns them. */
  show(events, items) {
    this.#events = events;
    this.#items = items;
    this.#render();
  }

  #render() {
    for (const order of Object.keys(ORDERS)) {
      const sorted = order === this.#order ? (order === "age" ? "ascending" : "descending") : "none";
      byId(`by-${order}`).setAttribute("aria-sort", sorted);
    }
    const heaviest = Math.max(...this.#events.map((event) => event.weight ?? 0), Number.MIN_VALUE);
    const indices = this.#events.map((_, index) => index);
    indices.sort((one, other) => ORDERS[this.#order](this.#events[one], this.#events[other]));
    render(
      indices.map((index) => this.#row(index, heaviest)),
      this.#body,
    );
    byId("history-note").textContent = describeParts(this.#events);
  }

  #row(index, heaviest) {
    const { part, itemId, action, at, age, weight } = this.#events[index];
    return html`<tr class=${part} data-index=${index}>
      <td>${itemLink(this.#items.get(itemId)?.title, itemId)}</td>
      <td>${action ?? "–"}</td>
      <td class="number" title="${formatInstant(at)} UTC">
        ${age < 0 ? `in ${formatDuration(-age)}` : formatDuration(age)}
      </td>
      <td class="number weight">
        ${
          weight === null
            ? WITHOUT_WEIGHT[part]
            : html`<meter min="0" max="1" value=${weight / heaviest} aria-hidden="true"></meter
                ><span class="percent">${formatPercent(weight)}</span>`
        }
      </td>
    </tr>`;
  }
}

function describeParts(events) {
  const count = (part) => events.filter((event) => event.part === part).length;
  const [read, later, unread] = ["read", "later", "unread"].map(count);
  const sentences = [`${read} read by the model`];
  if (unread > 0) sentences.push(`${unread} not read (unknown item, unused action, or too old)`);
  if (later > 0) sentences.push(`${later} after the query time`);
  return `${sentences.join(", ")}.`;
}

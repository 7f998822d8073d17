// @ts-check
/** The card "Top n before and after": both lists as one table, and what each side was computed from. */

import { live } from "../shell/directives.js";
import { formatCount, formatSigned, pluralize } from "../shell/format.js";
import { html, itemName, nothing, render } from "../shell/html.js";
import { describeFallback, describeWarnings } from "../widgets/warnings.js";
import { hasScores, LONGEST_HISTORY, scoresFailure } from "./data.js";

/**
 * @typedef {import("./data.js").ComparedItem} ComparedItem
 * @typedef {import("./data.js").Comparison} Comparison
 * @typedef {import("./data.js").Response} Response
 */

export const COUNTS = [5, 10, 20, 50, 100];
/** Smaller differences of scores count as none. */
const EVEN = 0.0005;

export class ItemsCard {
  #root;
  #choose;
  /** @type {{n: number, exclude_seen: boolean}} */
  #options = { n: 10, exclude_seen: true };
  /** @type {{comparison: Comparison, items: ComparedItem[]} | null} */
  #shown = null;

  /**
   * @param {HTMLElement} root
   * @param {(update: {n: number} | {exclude_seen: boolean}) => void} choose called on a change of the
   *   options
   */
  constructor(root, choose) {
    this.#root = root;
    this.#choose = choose;
    this.#render();
  }

  /** @param {{n: number, exclude_seen: boolean}} options */
  showOptions({ n, exclude_seen }) {
    this.#options = { n, exclude_seen };
    this.#render();
  }

  /**
   * @param {Comparison} comparison
   * @param {ComparedItem[]} items
   */
  show(comparison, items) {
    this.#shown = { comparison, items };
    this.#render();
  }

  /** Empties the lists. */
  clear() {
    this.#shown = null;
    this.#render();
  }

  #render() {
    render(this.#template(), this.#root);
  }

  #template() {
    const { n, exclude_seen } = this.#options;
    const counts = [...new Set([...COUNTS, n])].sort((one, other) => one - other);
    const chooseCount = (/** @type {Event} */ { target }) =>
      this.#choose({ n: Number(/** @type {HTMLSelectElement} */ (target).value) });
    const chooseSeen = (/** @type {Event} */ { target }) =>
      this.#choose({ exclude_seen: /** @type {HTMLInputElement} */ (target).checked });
    return html`
      <div class="heading-row">
        <h2 id="top-heading">Top <span id="top-count">${this.#shown ? n : nothing}</span> before and after</h2>
        <div class="controls">
          <label>Items <select id="n" @change=${chooseCount}>
            ${counts.map((one) => html`<option value=${one} .selected=${live(one === n)}>${one}</option>`)}
          </select></label>
          <div class="take-away"></div>
        </div>
      </div>
      <p class="note">The items that the model recommends for the history as stored and as edited.</p>
      <div class="toggles">
        <label><input id="exclude-seen" type="checkbox" .checked=${live(exclude_seen)}
                      @change=${chooseSeen}> only items not in the history</label>
      </div>
      <p id="top-summary">${this.#shown ? summarize(this.#shown.items) : nothing}</p>
      <p id="top-note" class="note">${this.#shown ? describeScores(this.#shown.comparison) : nothing}</p>
      <dl class="pairs">
        <dt>Before</dt><dd id="inputs-before">${this.#inputsOf("before")}</dd>
        <dt>After</dt><dd id="inputs-after">${this.#inputsOf("after")}</dd>
      </dl>
      <div class="scroller top" tabindex="0" role="region" aria-label="Items before and after">
        <table class="compared">
          <thead>
            <tr><th scope="col" rowspan="2">Item</th>
                <th scope="colgroup" colspan="3">Rank</th>
                <th scope="colgroup" colspan="3">Score</th></tr>
            <tr><th scope="col" class="number">before</th><th scope="col" class="number">after</th>
                <th scope="col">change</th>
                <th scope="col" class="number">before</th><th scope="col" class="number">after</th>
                <th scope="col" class="number">change</th></tr>
          </thead>
          <tbody id="compared-items">${this.#shown?.items.map((item) => row(item, exclude_seen))}</tbody>
        </table>
      </div>`;
  }

  #inputsOf(/** @type {"before" | "after"} */ side) {
    return this.#shown ? describeInputs(this.#shown.comparison[side]) : "…";
  }
}

/**
 * How much of the history a response is based on, and its warnings.
 * @param {Response} response
 */
function describeInputs({ sweep, events, isCut }) {
  const [at] = sweep.instants;
  const sentences = describeWarnings([...new Set([...at.warnings, ...sweep.warnings])], sweep.unknown_item_ids);
  if (at.fallback !== null) sentences.unshift(describeFallback(at.fallback));
  if (isCut) sentences.push(`only the newest ${formatCount(LONGEST_HISTORY)} events were sent`);
  return html`${formatCount(at.history_used)} of ${pluralize(events.length, "event")} read${sentences.map(
    (sentence) => html`<p class="caution">${sentence}</p>`,
  )}`;
}

/**
 * What the scores are, or why they are not shown.
 * @param {Comparison} comparison
 */
export function describeScores(comparison) {
  if (scoresFailure(comparison) !== null) return "The scores could not be loaded.";
  return hasScores(comparison)
    ? "All scores are of this model; an item outside a top list has a score there, but no rank."
    : "Scores are not comparable: a side without a usable history has its items ranked by popularity, a count of events.";
}

/**
 * @param {ComparedItem} item
 * @param {boolean} excludesSeen
 */
function row(item, excludesSeen) {
  const { itemId, title, categories, before, after, change } = item;
  return html`
    <tr data-item=${itemId} class=${change}>
      <td>${itemName(title, itemId)}${
        categories.length ? html`<span class="note block">${categories.join(", ")}</span>` : nothing
      }</td>
      <td class="number was-rank">${before.rank ?? "–"}</td>
      <td class="number is-rank">${after.rank ?? "–"}</td>
      <td class="moved">${describeChange(item, excludesSeen)}</td>
      <td class="number was-score">${formatScore(before.score)}</td>
      <td class="number is-score">${formatScore(after.score)}</td>
      <td class="number difference">${formatDifference(item.difference)}</td>
    </tr>`;
}

/**
 * @param {ComparedItem} item
 * @param {boolean} excludesSeen
 */
function describeChange({ change, by, before, after }, excludesSeen) {
  const words = {
    entered: ["+", excludesSeen && before.isSeen ? "entered: not in the history now" : "entered"],
    left: ["−", excludesSeen && after.isSeen ? "left: in the history now" : "left"],
    up: ["▲", `up ${by}`],
    down: ["▼", `down ${by}`],
    same: ["=", "same"],
  };
  const [sign, text] = words[change];
  return html`<span class="sign" aria-hidden="true">${sign}</span>${text}`;
}

/**
 * Formats a score: a count of events for a popular item, a real number of the model otherwise.
 * @param {number | null} score
 */
const formatScore = (score) =>
  score === null ? "–" : Number.isInteger(score) ? String(score) : score.toFixed(3);

/**
 * Formats a difference of scores with its sign; a dash where they do not compare.
 * @param {number | null} difference
 */
export function formatDifference(difference) {
  if (difference === null) return "–";
  if (Math.abs(difference) < EVEN) return "0.000";
  return formatSigned(difference, 3);
}

/**
 * How the top list changed, in a sentence.
 * @param {ComparedItem[]} items
 */
export function summarize(items) {
  const countOf = (/** @type {string[]} */ ...changes) =>
    items.filter(({ change }) => changes.includes(change)).length;
  const counts = /** @type {[number, string][]} */ ([
    [countOf("entered"), "entered"],
    [countOf("left"), "left"],
    [countOf("up", "down"), "moved"],
    [countOf("same"), "kept the rank"],
  ]).filter(([number]) => number > 0);
  const moves = counts.map(([number, what]) => `${number} ${what}`).join(", ");
  const compared = items.filter(({ difference }) => difference !== null);
  if (compared.length === 0) return `${moves}.`;
  const size = (/** @type {ComparedItem} */ { difference }) => Math.abs(difference ?? 0);
  const largest = compared.reduce((one, other) => (size(other) > size(one) ? other : one));
  if (size(largest) < EVEN) return `${moves}. No score changed.`;
  const name = largest.title || largest.itemId;
  return `${moves}. Largest change of a score: ${name}, ${formatDifference(largest.difference)}.`;
}

// @ts-check
/** The card of reasons: why an item is recommended, or what is in a basket. */

import {
  formatCount,
  formatDecimals,
  formatInstant,
  formatPercent,
  formatSigned,
  pluralize,
} from "../shell/format.js";
import { byId, failure, html, itemLink, itemName, nothing, render } from "../shell/html.js";
import { customerValues } from "../shell/permalink.js";
import { fromMilliseconds, toCompact } from "../what_if/exact_instants.js";
import { formatLift } from "./basket_rows.js";
import { formatLongDay } from "./time_scale.js";

/** @typedef {import("./view.js").View} View */

/** @type {Record<string, string>} */
const KINDS = {
  repeats: "Chosen before by this customer",
  popularity: "How popular it is lately",
  state: "Fits this history",
  bias: "The item itself, for any customer",
  calendar: "The time of day, week and year",
  followers: "Follows what was chosen before",
  neighbours: "Chosen by similar customers",
};
/** @type {Record<string, string>} what `faithfulness_note` says */
const NOTES = {
  high: "Baskets with more attention have the larger effect here.",
  medium: "Baskets with more attention tend to have the larger effect here.",
  reversed: "Baskets with more attention have the smaller effect here.",
  too_few_left_out: "Too few baskets to compare attention with effect.",
  equal_weights: "All have the same attention, so it says nothing of the effects.",
  changes_within_noise: "The changes are no larger than rounding.",
  not_significant: "These do not show whether more attention means more effect.",
};
const LEFT_OUT = 6;
const WAITING = "The reasons follow once the point in time rests.";
const COLUMNS = html`<colgroup><col class="what"><col class="bars"><col></colgroup>`;

export class WhyCard {
  #linked;
  #leaveOut;
  #content = byId("why-content");
  /** @type {View | null} */
  #view = null;
  /** @type {{at: number, items: Map<string, any>} | null} the reasons of one point in time */
  #reasons = null;
  /** @type {{itemId: string, answer: any} | null} */
  #tested = null;
  #isTesting = false;
  #failure = "";
  /** @type {any} why there are no reasons; null where they are there or follow */
  #refusal = null;

  /**
   * @param {object} options
   * @param {import("./linked.js").Linked} options.linked
   * @param {(itemId: string) => Promise<any>} options.leaveOut requests an item's score without each basket
   */
  constructor({ linked, leaveOut }) {
    this.#linked = linked;
    this.#leaveOut = leaveOut;
  }

  /** @param {View} view */
  show(view) {
    this.#view = view;
    if (view.sweep === null || this.#reasons?.at !== view.queryTime) this.#tested = null;
    const { sweep, index } = view;
    if (sweep === null) {
      this.#refusal = null;
      render(nothing, this.#content);
      return;
    }
    const { target, pinned } = this.#linked;
    const shown = target?.kind === "item" ? target : (pinned ?? this.#topItem(sweep.at(index)));
    if (shown === null) render(html`<p class="note">Nothing is recommended here.</p>`, this.#content);
    else if (shown.kind === "item") this.#showItem(shown.itemId);
    else this.#showBasket(shown.at);
  }

  /**
   * Receives a response with the reasons of its items.
   *
   * @param {any} answer
   * @param {number} at its query time
   */
  receive(answer, at) {
    this.#refusal = null;
    this.#reasons = { at, items: new Map(answer.items.map((item) => [item.item_id, item])) };
    this.#tested = null;
    if (this.#view !== null) this.show(this.#view);
  }

  /** Shows that the reasons follow, while the point in time plays. */
  showWaiting() {
    byId("why-heading").textContent = "Why";
    render(html`<p class="note">${WAITING}</p>`, this.#content);
  }

  /**
   * Shows why the reasons cannot be shown.
   *
   * @param {string} message
   * @param {() => void} retry
   */
  fail(message, retry) {
    this.#reasons = null;
    this.#refusal = failure(message, () => {
      this.#refusal = null;
      if (this.#view !== null) this.show(this.#view);
      retry();
    });
    if (this.#view !== null) this.show(this.#view);
  }

  /** The contributions of all items, as rows for a file. */
  table() {
    return [...(this.#reasons?.items.values() ?? [])].flatMap((item) =>
      item.reasons.contributions.map(({ kind, value }) => ({
        rank: item.rank,
        item_id: item.item_id,
        title: item.title ?? "",
        kind,
        contribution: value,
        score: item.score,
        sentence: item.reasons.sentence,
      })),
    );
  }

  #topItem({ items }) {
    return items.length === 0 ? null : { kind: "item", itemId: items[0].item_id };
  }

  #showItem(itemId) {
    const { sweep, index, nameOf, queryTime } = /** @type {View} */ (this.#view);
    const item = sweep.at(index).items.find((one) => one.item_id === itemId);
    const reasoned = this.#reasons?.at === queryTime ? this.#reasons.items.get(itemId) : undefined;
    byId("why-heading").textContent = item === undefined ? "Not recommended here" : `Why this item is number ${item.rank}`;
    render(
      html`<p class="about">${itemLink(nameOf(itemId), itemId)}</p>
        ${
          item === undefined
            ? html`<p class="note">Not among the recommended items at this point in time.</p>`
            : reasoned === undefined
              ? html`<p class="note">${this.#refusal ?? WAITING}</p>`
              : [this.#reasonsOf(reasoned), this.#effects(itemId)]
        }`,
      this.#content,
    );
  }

  #reasonsOf({ score, reasons: { sentence, contributions } }) {
    const average = contributions.find(({ kind }) => kind === "average");
    const parts = contributions.filter(({ kind }) => kind !== "average");
    const most = Math.max(...parts.map(({ value }) => Math.abs(value)), 1e-9);
    return html`<p class="reason">${sentence}</p>
      <table class="contributions" aria-label="What adds up to the score">
        ${COLUMNS}<tbody>${parts.map(
          ({ kind, value, events }) => html`<tr>
            <th scope="row">${KINDS[kind] ?? kind}
              ${events.length === 0 || kind !== "repeats" ? nothing : html`<span class="note">${this.#purchases(events)}</span>`}</th>
            <td class="bar">${bar(value, most)}</td>
            <td class="number">${signed(value)}</td></tr>`,
        )}</tbody>
      </table>
      <p class="note">${
        average === undefined ? nothing : `With ${signed(average.value)} of the average item, they add up to `
      }${average === undefined ? "They add up to " : ""}the score ${formatDecimals(score, 2)}. A score compares items of one list.</p>`;
  }

  /** The user's own events of the item, each a button that pins its basket. */
  #purchases(events) {
    return events.map(
      ({ timestamp, value }) => html`<button type="button" class="link" title=${signed(value)}
        @click=${() => this.#linked.pin({ kind: "basket", at: Date.parse(timestamp) })}
        >${formatLongDay(Date.parse(timestamp))}</button> `,
    );
  }

  /** What the score would be without each basket: requested on a click. */
  #effects(itemId) {
    const test = async () => {
      this.#isTesting = true;
      this.#failure = "";
      this.show(/** @type {View} */ (this.#view));
      try {
        this.#tested = { itemId, answer: await this.#leaveOut(itemId) };
      } catch (error) {
        this.#failure = error.message;
      }
      this.#isTesting = false;
      this.show(/** @type {View} */ (this.#view));
    };
    const { sweep, index } = /** @type {View} */ (this.#view);
    if (sweep.at(index).history_used === 0) return nothing;
    const tested = this.#tested;
    if (tested === null || tested.itemId !== itemId) {
      return html`<p><button id="leave-out" type="button" class="plain" ?disabled=${this.#isTesting} @click=${test}
          >${this.#isTesting ? "Testing…" : "Test by leaving out baskets"}</button>
        <span class="refusal">${this.#failure}</span></p>`;
    }
    const { attention } = tested.answer;
    if (attention === null) return html`<p class="note">This model has no attention to test.</p>`;
    const effects = [...attention.left_out].sort((one, other) => Math.abs(other.occlusion) - Math.abs(one.occlusion));
    const most = Math.max(...effects.map(({ occlusion }) => Math.abs(occlusion)), 1e-9);
    return html`<p class="note">Left out, a basket lowers the score by more (+) or less (−) than leaving out
        one of these does on average. ${NOTES[attention.faithfulness_note] ?? ""} ${
          effects.length > LEFT_OUT
            ? `The ${LEFT_OUT} with the largest effects of ${formatCount(effects.length)} left out.`
            : nothing
        }</p>
      <table class="contributions effects" aria-label="Change of the score without each basket">
        ${COLUMNS}<tbody>${effects.slice(0, LEFT_OUT).map(
          ({ timestamp, events, occlusion }) => html`<tr>
            <th scope="row"><button type="button" class="link"
              @click=${() => this.#linked.pin({ kind: "basket", at: Date.parse(timestamp) })}
              >${formatLongDay(Date.parse(timestamp))}</button> <span class="note">${pluralize(events.length, "item")}</span></th>
            <td class="bar">${bar(occlusion, most)}</td><td class="number">${signed(occlusion)}</td></tr>`,
        )}</tbody>
      </table>`;
  }

  #showBasket(at) {
    const { sweep, index, nameOf, user, queryTime, excludeSeen } = /** @type {View} */ (this.#view);
    const basket = sweep.baskets.find((one) => one.at === at);
    byId("why-heading").textContent = "In this basket";
    if (basket === undefined) {
      render(html`<p class="note">The model does not read this basket.</p>`, this.#content);
      return;
    }
    const { weight, read } = sweep.weightAt(index, basket);
    const lift = sweep.liftAt(index, basket);
    const rows = Array.from({ length: basket.end - basket.first }, (_, offset) => basket.first + offset);
    render(
      html`<p class="about">${formatInstant(at)} UTC</p>
        <p class="note">${
          lift === null || read === 0
            ? "Not read at this point in time. "
            : `${formatPercent(weight)} of the attention, ${formatLift(lift)} times its even share. `
        }
        ${user === null ? nothing : html`<a href=${whatIfLink({ user, queryTime, excludeSeen }, at)}>What if without this basket?</a>`}</p>
        <ul class="basket-items">${rows.map((number) => {
          const { itemId, action } = sweep.events[number];
          const share = sweep.weightAt(index, { first: number, end: number + 1 });
          return html`<li><button type="button" @click=${() => this.#linked.pin({ kind: "item", itemId })}>
            ${itemName(nameOf(itemId), itemId)}</button>
            <span class="note">${action ?? ""}</span>
            <span class="number">${share.read === 0 ? "–" : formatPercent(share.weight)}</span></li>`;
        })}</ul>`,
      this.#content,
    );
  }
}

/** A bar from the middle: to the right for more, to the left for less. */
function bar(value, most) {
  const width = (50 * Math.abs(value)) / most;
  return html`<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class=${value < 0 ? "less" : "more"} x=${value < 0 ? 50 - width : 50} y="1" width=${width} height="8"></rect>
  </svg>`;
}

const signed = (value) => formatSigned(value, 2);

/** A link to What if without a basket. */
function whatIfLink({ user, queryTime, excludeSeen }, at) {
  const edits = `basket.${toCompact(fromMilliseconds(at))}`;
  const state = customerValues({ user, query_time: queryTime, exclude_seen: excludeSeen });
  return `what_if.html#${new URLSearchParams({ ...state, edits })}`;
}

// @ts-check
/** The card of reasons: why an item is recommended, or what is in a basket. */

import { formatInstant, formatPercent } from "../shell/format.js";
import { byId, html, itemLink, itemName, nothing, render } from "../shell/html.js";
import { formatLift } from "./basket_rows.js";
import { fromMilliseconds, toCompact } from "../what_if/exact_instants.js";
import { formatLongDay } from "./time_scale.js";

/** @typedef {import("./view.js").View} View */

export class WhyCard {
  #linked;
  #content = byId("why-content");
  /** @type {View | null} */
  #view = null;

  /** @param {{linked: import("./linked.js").Linked}} options */
  constructor({ linked }) {
    this.#linked = linked;
  }

  /** @param {View} view */
  show(view) {
    this.#view = view;
    const { sweep, index } = view;
    if (sweep === null) {
      render(nothing, this.#content);
      return;
    }
    const target = this.#linked.pinned ?? this.#topItem(sweep.at(index));
    if (target === null) render(html`<p class="note">Nothing is recommended here.</p>`, this.#content);
    else if (target.kind === "item") this.#showItem(target.itemId);
    else this.#showBasket(target.at);
  }

  #topItem({ items }) {
    return items.length === 0 ? null : { kind: "item", itemId: items[0].item_id };
  }

  #showItem(itemId) {
    const { sweep, index, nameOf } = /** @type {View} */ (this.#view);
    const item = sweep.at(index).items.find((one) => one.item_id === itemId);
    const bought = sweep.events.filter((event) => event.itemId === itemId);
    byId("why-heading").textContent = "Why this item";
    render(
      html`<p class="about">${itemLink(nameOf(itemId), itemId)}</p>
        <p class="note">${
          item === undefined
            ? "Not among the recommended items at this point in time."
            : `Rank ${item.rank}, score ${item.score.toPrecision(4)}.`
        }</p>
        ${bought.length === 0 ? nothing : html`<p class="note">In the history on ${bought.map(({ at }) => formatLongDay(at)).join(", ")}.</p>`}`,
      this.#content,
    );
  }

  #showBasket(at) {
    const { sweep, index, nameOf, user, queryTime } = /** @type {View} */ (this.#view);
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
            ? "Not read at this point in time."
            : `${formatPercent(weight)} of the attention, ${formatLift(lift)} times its even share.`
        }
        ${user === null ? nothing : html`<a href=${whatIfLink(user, queryTime, at)}>What if it had not been bought?</a>`}</p>
        <ul class="basket-items">${rows.map((number) => {
          const { itemId, action } = sweep.events[number];
          const one = { first: number, end: number + 1 };
          const share = sweep.weightAt(index, one);
          return html`<li><button type="button" @click=${() => this.#linked.pin({ kind: "item", itemId })}>
            ${itemName(nameOf(itemId), itemId)}</button>
            <span class="note">${action ?? ""}</span>
            <span class="number">${share.read === 0 ? "–" : formatPercent(share.weight)}</span></li>`;
        })}</ul>`,
      this.#content,
    );
  }
}

/** A link to What if without a basket. */
function whatIfLink(user, queryTime, at) {
  const edits = `basket.${toCompact(fromMilliseconds(at))}`;
  const query_time = new Date(queryTime).toISOString();
  return `what_if.html#${new URLSearchParams({ user, query_time, exclude_seen: "false", edits })}`;
}

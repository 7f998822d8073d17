// @ts-check
/** The card of recommendations at the point in time, beside what they are compared with. */

import { formatInstant } from "../shell/format.js";
import { byId, html, itemName, nothing, render } from "../shell/html.js";
import { describeFallback, describeWarnings } from "../widgets/warnings.js";
import { compareLists, describeComparison } from "./compare.js";
import { formatLongDay } from "./time_scale.js";

/** @typedef {import("./view.js").View} View */

export class RankingCard {
  #linked;
  #list = byId("top-items");
  /** @type {View | null} */
  #view = null;

  /** @param {{linked: import("./linked.js").Linked}} options */
  constructor({ linked }) {
    this.#linked = linked;
    this.#list.addEventListener("pointerleave", () => linked.hover(null));
  }

  /** @param {View} view */
  show(view) {
    this.#view = view;
    const { sweep, index, other, queryTime } = view;
    if (sweep === null) {
      render(nothing, this.#list);
      byId("ranking-summary").textContent = "";
      render(nothing, byId("warnings"));
      return;
    }
    const answer = sweep.at(index);
    const before = other === null ? null : other.sweep.at(other.index).items;
    byId("ranking-heading").textContent = `Recommended on ${formatLongDay(queryTime)}`;
    byId("ranking-summary").textContent =
      other === null ? describeFallbackOf(answer) : describeComparison(view);
    render(
      compareLists(answer.items, before).map((one) => this.#row(one, before !== null)),
      this.#list,
    );
    // The card of baskets says how much of the history the model reads.
    const codes = answer.warnings.filter((code) => code !== "history_truncated");
    const warnings = describeWarnings(codes, []);
    render(warnings.map((text) => html`<p class="caution">${text}</p>`), byId("warnings"));
  }

  /** The list, as rows for a file. */
  table() {
    const { sweep, index, other, queryTime } = /** @type {View} */ (this.#view);
    const before = other === null ? null : other.sweep.at(other.index).items;
    return compareLists(sweep.at(index).items, before).map(({ item, rank, before: old }) => ({
      query_time: formatInstant(queryTime),
      rank,
      compared_rank: old,
      item_id: item.item_id,
      title: item.title ?? "",
      score: item.score,
      reason: item.reason,
    }));
  }

  #row({ itemId, rank, before, item }, isCompared) {
    const target = { kind: "item", itemId };
    const isLinked = this.#linked.hasItem(itemId, this.#view?.sweep);
    const { pinned } = this.#linked;
    const isPinned = pinned?.kind === "item" && pinned.itemId === itemId;
    const classes = [isLinked && "linked", rank === null && "lost"].filter(Boolean).join(" ");
    return html`<li class=${classes} data-item=${itemId}>
      <button type="button" aria-pressed=${isPinned} @click=${() => this.#linked.toggle(target)}
          @pointerenter=${() => this.#linked.hover(target)}
          @focus=${() => this.#linked.hover(target)} @blur=${() => this.#linked.hover(null)}>
        <span class="rank">${rank ?? "–"}</span>
        ${itemName(item.title, itemId)}
        ${item.reason === "popular" ? html`<span class="badge">popular</span>` : nothing}
        ${isCompared ? html`<span class="move">${describeMove(rank, before)}</span>` : nothing}
      </button>
    </li>`;
  }
}

const describeFallbackOf = ({ fallback }) =>
  fallback === null ? "" : `${describeFallback(fallback)}.`;

/** How a rank has changed, such as "▲ 2" or "new". */
function describeMove(rank, before) {
  if (before === null) return html`<span class="new">+ new</span>`;
  if (rank === null) return html`<span class="down">− was ${before}</span>`;
  const by = before - rank;
  if (by === 0) return html`<span class="same">=</span>`;
  const [symbol, word, name] = by > 0 ? ["▲", "up", "up"] : ["▼", "down", "down"];
  return html`<span class=${name}>${symbol}<span class="visually-hidden"> ${word}</span> ${Math.abs(by)}</span>`;
}

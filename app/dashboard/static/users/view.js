/** Shows one answer everywhere on the page but in the sweep's own card. */

import { byId } from "../shell/html.js";
import { showVersion } from "../shell/page.js";
import { showAccount } from "./account.js";
import { AttentionPlot } from "./attention_plot.js";
import { offerHeads } from "./controls.js";
import { HeadCharts } from "./head_charts.js";
import { HistoryTable } from "./history_table.js";
import { weightsInWords } from "./summary.js";
import { Timeline } from "./timeline.js";
import { showTopItems } from "./top_items.js";
import { weightedHistory } from "./weighted_history.js";

export class View {
  #items;
  #plot = new AttentionPlot();
  #timeline = new Timeline();
  #heads;
  #table = new HistoryTable((event) => this.#plot.point(event));
  /** What the ranks are compared with, and what they will be. */
  #before = null;
  #ranked = null;

  /**
   * `items` knows titles and categories by id; answers add to it. `chooseHead(head)` is called with
   * the number of a head that is clicked.
   */
  constructor(items, chooseHead) {
    this.#items = items;
    this.#heads = new HeadCharts(chooseHead);
  }

  /** Compare no ranks with what has been shown so far. */
  forgetRanks() {
    this.#before = this.#ranked = null;
  }

  /**
   * Show an answer for an instant (milliseconds); `state` says how, `history` is `{events, span}`.
   * Resolves once everything is drawn.
   */
  show(answer, at, state, { events: stored, span }) {
    remember(this.#items, [...answer.items, ...(answer.attention?.events ?? [])]);
    const heads = answer.attention?.heads ?? null;
    // A sweep tells the mean of the heads alone.
    const head = heads === null ? null : state.head;
    if (heads !== null) offerHeads(heads.length, head);
    const events = weightedHistory(stored, answer, at, head === null ? null : head - 1);
    showVersion(answer.model_version);
    showAccount(answer, stored.filter((event) => event.at <= at).length);
    this.#rank(answer.items, at);
    this.#table.show(events, this.#items);
    byId("plot-summary").textContent = weightsInWords(events, answer, { head, items: this.#items });
    const shown = { events, items: this.#items, queryTime: at, span, scale: state.scale };
    return Promise.all([
      this.#timeline.show(shown),
      this.#plot.show(shown),
      this.#showHeads(answer, { ...shown, head }),
    ]);
  }

  /** Heads are known of exact answers alone: those of the instant before stay, marked as such. */
  #showHeads({ attention, recommendation_id: isExact }, shown) {
    const card = byId("heads-card");
    const isKnown = Boolean(attention?.heads) && attention.events.length > 0;
    const isAwaited = attention !== null && !isKnown && !isExact;
    card.setAttribute("aria-busy", isAwaited);
    byId("heads-figure").hidden = !isKnown && !isAwaited;
    byId("heads-note").textContent =
      isKnown || isAwaited ? "" : "Without weights of single heads there are none to compare.";
    if (!isKnown) return null;
    const heads = attention.heads.map((weights) =>
      attention.events.map((event, place) => ({
        itemId: event.item_id,
        action: event.action,
        at: Date.parse(event.timestamp),
        age: event.age_seconds * 1000,
        weight: weights[place],
      })),
    );
    return this.#heads.show({ ...shown, heads });
  }

  #rank(items, at) {
    if (this.#ranked !== null && this.#ranked.at !== at) this.#before = this.#ranked.ids;
    this.#ranked = { at, ids: items.map((item) => item.item_id) };
    showTopItems(items, this.#before);
  }
}

/** Keep the titles and categories that an answer tells. */
export function remember(items, named) {
  for (const { item_id: itemId, title, categories = [] } of named) {
    items.set(itemId, { title, categories });
  }
}

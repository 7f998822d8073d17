/** What a score owes to each event, beside how much the event was attended to. */

import { LatestRequest } from "../shell/api.js";
import { Chart, cssColor } from "../shell/chart.js";
import { formatInstant, formatPercent } from "../shell/format.js";
import { byId, element, itemLink, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { eventInWords } from "./event_words.js";
import { occlude } from "./questions.js";

const DIGITS = 4;

export class OcclusionPanel {
  #card = byId("occlusion");
  #select = byId("occluded-item");
  #note = byId("occlusion-note");
  #result = byId("occlusion-result");
  #chart = new Chart(byId("occlusion-plot"));
  #items;
  #requests = new LatestRequest({
    send: occlude,
    show: (answer, { query_time: at }) => this.#show(answer.attention, at),
    fail: (error) => this.#explain(error.message),
    pause: 0,
  });

  /**
   * `choose(itemId)` is called when the reader asks about one of the items; `items` knows titles by
   * id.
   */
  constructor({ choose, items }) {
    this.#items = items;
    byId("occlude").addEventListener("click", () => choose(this.#select.value));
  }

  /** Offer the items of an answer, and drop what was said of another question. */
  offer(top, attends) {
    const chosen = this.#select.value;
    this.#select.replaceChildren(
      ...top.map(({ item_id: itemId, title, rank }) =>
        element("option", { value: itemId }, `${rank}. ${title ?? itemId}`),
      ),
    );
    if (top.some((item) => item.item_id === chosen)) this.#select.value = chosen;
    const isPossible = attends && top.length > 0;
    this.#select.disabled = byId("occlude").disabled = !isPossible;
    this.forget();
    if (!isPossible) this.#explain("Without weights there is nothing to compare.");
  }

  /** Drop what was said of another instant, or is being asked of it. */
  forget() {
    this.#requests.cancel();
    this.#explain("");
  }

  /** Ask about the item of a state, which names it. */
  want(state) {
    const itemId = state.explain_item_id;
    if (![...this.#select.options].some((option) => option.value === itemId)) {
      this.#select.append(element("option", { value: itemId }, this.#items.get(itemId)?.title ?? itemId));
    }
    this.#select.value = itemId;
    this.#explain("Leaving out events, one at a time…");
    this.#card.setAttribute("aria-busy", true);
    this.#requests.request(state);
  }

  #explain(sentence) {
    this.#result.hidden = true;
    this.#note.textContent = sentence;
    this.#card.setAttribute("aria-busy", false);
  }

  #show(attention, at) {
    const measured = (attention?.events ?? []).filter((event) => event.occlusion !== null);
    if (measured.length === 0) {
      this.#explain("No event was left out: the model read none at this instant, or does not know the item.");
      return;
    }
    this.#explain("");
    this.#result.hidden = false;
    const item = attention.occlusion_of_item_id;
    byId("faithfulness").textContent = attention.faithfulness === null ? "–" : signed(attention.faithfulness, 2);
    byId("occlusion-reading").textContent = reading(attention.faithfulness);
    const title = this.#items.get(item)?.title || item;
    byId("occlusion-summary").textContent =
      `Each of the ${measured.length} events attended to most, left out once: how much lower the score of ` +
      `${title} is without it, against its weight. Below 0 the event speaks against the item.`;
    this.#tabulate(measured);
    this.#card.setAttribute("aria-busy", true);
    this.#chart
      .draw(
        () => picture(measured),
        ({ pointNumber }) => this.#tip(measured[pointNumber], at),
      )
      .then(() => this.#card.setAttribute("aria-busy", false));
  }

  #tip(event, at) {
    const when = Date.parse(event.timestamp);
    const known = { itemId: event.item_id, action: event.action, at: when, age: at - when };
    return [
      ...eventInWords(known, this.#items),
      `weight ${formatPercent(event.weight)}`,
      `score change ${signed(event.occlusion)}`,
    ];
  }

  #tabulate(measured) {
    const caption = "Weights and score changes";
    const rows = [...measured]
      .sort((one, other) => other.weight - one.weight)
      .map((event) => [
        itemLink(event.title, event.item_id),
        formatInstant(Date.parse(event.timestamp)),
        formatPercent(event.weight),
        signed(event.occlusion),
      ]);
    const columns = ["Event left out", "When (UTC)", "Weight", "Score change"];
    render(scrollRegion(table({ caption, columns, rows }), caption), byId("occlusion-table"));
  }
}

function picture(measured) {
  return {
    traces: [
      {
        type: "scatter",
        mode: "markers",
        x: measured.map((event) => event.weight),
        y: measured.map((event) => event.occlusion),
        marker: { size: 9, color: cssColor("--bar"), opacity: 0.75 },
      },
    ],
    layout: {
      xaxis: { title: { text: "weight" }, tickformat: ".1~%", nticks: 6 },
      yaxis: { title: { text: "score change" }, zeroline: true, zerolinecolor: cssColor("--faint") },
    },
  };
}

function reading(faithfulness) {
  if (faithfulness === null) {
    return "There is no order to compare: fewer than two events were left out, or all count alike.";
  }
  const scale = "Spearman's rank correlation of weight and score change over these events: 1 would be the same order.";
  if (faithfulness >= 0.7) return `${scale} High: for this item the weights rank the events about as their effect does.`;
  if (faithfulness >= 0.3) return `${scale} Middling: weights and effects agree only in part, so look at both.`;
  return `${scale} Low: events with large weights are not those that move this score, so do not read the weights as reasons.`;
}

/** A number with its sign, the minus as a minus. */
const signed = (number, digits = DIGITS) =>
  `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(digits)}`;

// @ts-check
/** The occlusion card: how a score changes when an event is left out, against the event's weight. */

import { LatestRequest } from "../shell/api.js";
import { Chart, cssColor } from "../shell/chart.js";
import { formatInstant, formatPercent } from "../shell/format.js";
import { byId, html, itemLink, nothing, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { describeEvent } from "./attention_card.js";
import { occlude } from "./data.js";

const DIGITS = 4;

export class OcclusionCard {
  #card = byId("occlusion");
  #select = byId("occluded-item");
  #result = byId("occlusion-result");
  #chart = new Chart(byId("occlusion-plot"));
  #items;
  #offered = [];
  #requests = new LatestRequest({
    send: occlude,
    show: (answer, { query_time: at }) => this.#show(answer.attention, at),
    fail: (error) => this.#explain(error.message),
    pause: 0,
  });

  /**
   * @param {object} options
   * @param {(itemId: string) => void} options.choose called when the user requests an item
   * @param {import("./data.js").Items} options.items
   */
  constructor({ choose, items }) {
    this.#items = items;
    byId("occlude").addEventListener("click", () => choose(this.#select.value));
  }

  /** Offers the items of a response, and drops the last result. */
  offer(top, hasWeights) {
    this.#offered = top;
    this.#showOptions(this.#select.value);
    const isPossible = hasWeights && top.length > 0;
    this.#select.disabled = byId("occlude").disabled = !isPossible;
    this.clear();
    if (!isPossible) this.#explain("Without weights there is nothing to compare.");
  }

  /** Drops the result and the request in flight. */
  clear() {
    this.#requests.cancel();
    this.#explain("");
  }

  /** Requests the result for the item of a state. */
  request(state) {
    this.#showOptions(state.explain_item_id, true);
    this.#explain("Evaluating without each event in turn…");
    this.#setBusy(true);
    this.#requests.request(state);
  }

  /** Shows the offered items; with `isAdded` also a chosen one that is not among them. */
  #showOptions(chosen, isAdded = false) {
    const isOffered = this.#offered.some((item) => item.item_id === chosen);
    const option = ({ item_id: itemId, title, rank }) =>
      html`<option value=${itemId}>${rank}. ${title ?? itemId}</option>`;
    const other = () =>
      html`<option value=${chosen}>${this.#items.get(chosen)?.title ?? chosen}</option>`;
    render([this.#offered.map(option), isAdded && !isOffered ? other() : nothing], this.#select);
    this.#select.value = isOffered || isAdded ? chosen : (this.#offered[0]?.item_id ?? "");
  }

  #explain(sentence) {
    this.#result.hidden = true;
    byId("occlusion-note").textContent = sentence;
    this.#setBusy(false);
  }

  #setBusy(isBusy) {
    this.#card.setAttribute("aria-busy", String(isBusy));
  }

  #show(attention, at) {
    const measured = (attention?.events ?? []).filter((event) => event.occlusion !== null);
    if (measured.length === 0) {
      this.#explain("No event was left out: the model read none at this instant, or does not know the item.");
      return;
    }
    this.#explain("");
    this.#result.hidden = false;
    const { faithfulness, occlusion_of_item_id: item } = attention;
    byId("faithfulness").textContent = faithfulness === null ? "–" : formatSigned(faithfulness, 2);
    byId("occlusion-reading").textContent = interpret(faithfulness);
    const title = this.#items.get(item)?.title || item;
    byId("occlusion-summary").textContent =
      `Each of the ${measured.length} most weighted events, left out once: how much lower the score of ` +
      `${title} is without it, against its weight. Below 0 the event lowers the item's score.`;
    showMeasured(measured);
    this.#setBusy(true);
    this.#chart
      .draw(
        () => buildScatter(measured),
        ({ pointNumber }) => this.#describe(measured[pointNumber], at),
      )
      .then(() => this.#setBusy(false));
  }

  #describe(event, at) {
    const when = Date.parse(event.timestamp);
    const known = { itemId: event.item_id, action: event.action, at: when, age: at - when };
    return [
      ...describeEvent(known, this.#items),
      `weight ${formatPercent(event.weight)}`,
      `score change ${formatSigned(event.occlusion)}`,
    ];
  }
}

function showMeasured(measured) {
  const caption = "Weights and score changes";
  const columns = ["Event left out", "When (UTC)", "Weight", "Score change"];
  const rows = measured
    .toSorted((one, other) => other.weight - one.weight)
    .map((event) => [
      itemLink(event.title, event.item_id),
      formatInstant(Date.parse(event.timestamp)),
      formatPercent(event.weight),
      formatSigned(event.occlusion),
    ]);
  render(scrollRegion(table({ caption, columns, rows }), caption), byId("occlusion-table"));
}

function buildScatter(measured) {
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

function interpret(faithfulness) {
  if (faithfulness === null) {
    return "No rank correlation: fewer than two events were left out, or all values are equal.";
  }
  const scale =
    "Spearman's rank correlation of weight and score change over these events: 1 would be the same order.";
  if (faithfulness >= 0.7) {
    return `${scale} High: for this item, weights and score changes rank the events in nearly the same order.`;
  }
  if (faithfulness >= 0.3) {
    return `${scale} Medium: weights and score changes agree only in part, so look at both.`;
  }
  return `${scale} Low: the events with the largest weights are not those that change this score most, so do not read the weights as reasons.`;
}

/** A number with its sign. */
const formatSigned = (number, digits = DIGITS) =>
  `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(digits)}`;

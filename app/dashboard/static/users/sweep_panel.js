/** The card of the sweep: asks for it, draws the heat map, and says why where there is none. */

import { LatestRequest } from "../shell/api.js";
import { formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { HeatMap } from "./heat_map.js";
import { sweepKey, sweepOver } from "./questions.js";
import { Sweep } from "./sweep.js";

const COLUMNS_OF_THE_TABLE = 12;

export class SweepPanel {
  #card = byId("sweep");
  #note = byId("sweep-note");
  #figure = byId("sweep-figure");
  #map;
  #swept;
  #items;
  #key = null;
  #sweep = null;
  #at = null;
  #requests = new LatestRequest({
    send: sweepOver,
    show: (answer, { instants }) => this.#take(answer, instants),
    fail: (error) => this.#explain(`The sweep failed: ${error.message}. The slider asks anew at each instant.`),
    pause: 0,
  });

  /**
   * `go(at)` is called with an instant clicked in the heat map, `swept(sweep)` with every sweep that
   * is there, before it is drawn; `items` knows titles by id.
   */
  constructor({ go, swept, items }) {
    this.#map = new HeatMap(go);
    this.#swept = swept;
    this.#items = items;
  }

  /** The sweep of what was wanted last, or null while there is none. */
  get sweep() {
    return this.#sweep;
  }

  /** Drop what is there. */
  forget() {
    this.#requests.cancel();
    this.#key = this.#sweep = null;
    this.#busy(true);
  }

  /**
   * Have the sweep of a state over some instants, unless it is there; `version` is the model that
   * has to answer it, `events` how many there are to sweep.
   */
  want(state, { instants, events }, version) {
    this.#at = state.query_time;
    const key = JSON.stringify([sweepKey(state), version]);
    if (state.query_time_withheld) {
      this.forget();
      this.#explain(
        "The query time is withheld from the model, so weights do not follow it and there is nothing " +
          "to sweep; let the model have it to see how they move. The slider asks anew at each instant.",
      );
    } else if (events.length === 0) {
      this.forget();
      this.#explain("This history has no events, so there is nothing to weigh at any instant.");
    } else if (key !== this.#key) {
      this.forget();
      this.#key = key;
      performance.mark("kairos-sweep-asked");
      this.#requests.request({ state, instants });
    }
  }

  /** Move the line to an instant. */
  moveTo(at) {
    this.#at = at;
    if (this.#sweep !== null) this.#map.moveTo(at);
  }

  async #take(answer, instants) {
    const sweep = new Sweep(answer, instants);
    this.#sweep = sweep;
    this.#swept(sweep);
    if (!sweep.hasWeights) {
      this.#explain(
        answer.warnings.includes("attention_unavailable")
          ? "This model does not attend, so there are no weights to draw; the items follow the slider all the same."
          : "The model read none of these events at any instant, so there are no weights to draw.",
      );
      return;
    }
    this.#figure.hidden = false;
    this.#note.textContent = "";
    const { left, strongest } = await this.#map.show(sweep, this.#items, this.#at);
    if (this.#sweep !== sweep) return;
    byId("heat-most").textContent = `${formatPercent(strongest)} or more`;
    byId("heat-summary").textContent = this.#inWords(sweep, left);
    this.#tabulate(sweep);
    performance.measure("kairos-sweep-drawn", "kairos-sweep-asked");
    this.#busy(false);
  }

  #explain(sentence) {
    this.#figure.hidden = true;
    this.#note.textContent = sentence;
    this.#busy(false);
  }

  #busy(isBusy) {
    this.#card.setAttribute("aria-busy", isBusy);
  }

  #inWords({ events, instants }, left) {
    const [first, last] = [instants[0], instants.at(-1)].map(formatInstant);
    const older = left > 0 ? ` The ${pluralize(left, "oldest event")} of the sweep are not drawn.` : "";
    return (
      `Weights, averaged over heads, of ${pluralize(events.length - left, "event")} (upwards, oldest to ` +
      `newest) at ${pluralize(instants.length, "instant")} from ${first} to ${last} UTC. Grey: the event ` +
      `had not happened yet.${older} ` +
      "A click moves the query time; so does the slider."
    );
  }

  #tabulate({ events, instants, matrix }) {
    const step = Math.max(1, Math.ceil(instants.length / COLUMNS_OF_THE_TABLE));
    const places = instants.map((_, place) => place).filter((place) => place % step === 0);
    showAsTable(byId("heat-table"), {
      caption: "Weights of events at some of the swept instants",
      columns: ["Item", "Event (UTC)", ...places.map((place) => formatInstant(instants[place]))],
      rows: events.map((event, row) => [
        this.#items.get(event.itemId)?.title || element("code", {}, event.itemId),
        formatInstant(event.at),
        ...places.map((place) => inCell(matrix[row][place])),
      ]),
    });
  }
}

const inCell = (weight) => (weight === null ? "–" : weight === 0 ? "0 %" : formatPercent(weight));

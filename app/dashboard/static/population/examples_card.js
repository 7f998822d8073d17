// @ts-check
/** The card of example customers: whose last event is as old as a point of a curve. */

import { sendRequest } from "../shell/api.js";
import { formatDuration, formatInstant, pluralize, SECOND } from "../shell/format.js";
import { byId, failure, html, nothing, render } from "../shell/html.js";
import { ALL } from "./chart.js";

/**
 * @typedef {import("./chart.js").Line} Line
 * @typedef {import("./chart.js").View} View
 */

const EXAMPLES = 10;
/** Of the interval of a single point, to either side. */
const SINGLE = 2;

/**
 * The bounds of the interval of a point, in milliseconds: the geometric means with its neighbours.
 *
 * @param {{interval: number}[]} points ascending
 * @param {number} index
 */
export function intervalBounds(points, index) {
  const { interval } = points[index];
  const toNeighbour = (neighbour) => neighbour && Math.sqrt(neighbour.interval / interval);
  const below = toNeighbour(points[index - 1]);
  const above = toNeighbour(points[index + 1]);
  return {
    least: interval * (below ?? 1 / (above ?? SINGLE)),
    most: interval * (above ?? 1 / (below ?? 1 / SINGLE)),
  };
}

export class ExamplesCard {
  #curve = byId("examples-curve");
  #interval = byId("examples-interval");
  /** @type {Line[]} */
  #lines = [];
  /** @type {"action" | "category"} */
  #by = "action";
  /** @type {AbortController | null} */
  #inFlight = null;
  /** @type {{request: import("../shell/api.js").ApiRequest, response: any} | null} what is shown */
  found = null;

  constructor() {
    this.#curve.addEventListener("change", () => this.#listIntervals());
    byId("examples-find").addEventListener("click", () => this.#find());
  }

  /**
   * Offers the observed points of some lines.
   *
   * @param {Line[]} lines those of the compared version are left out
   * @param {"action" | "category"} by
   */
  offer(lines, by) {
    this.#lines = lines.filter((line) => !line.isCompared && line.curve.observed.length > 0);
    this.#by = by;
    byId("examples").hidden = this.#lines.length === 0;
    render(
      this.#lines.map(({ label }, index) => html`<option value=${index}>${label}</option>`),
      this.#curve,
    );
    this.#curve.value = "0";
    this.#clear();
    if (this.#lines.length > 0) this.#listIntervals();
  }

  /**
   * Finds the customers of a point, as a click on it requests.
   *
   * @param {Line} line
   * @param {number} interval milliseconds; that of the nearest observed point is taken
   */
  choose(line, interval) {
    const index = this.#lines.findIndex(({ curve }) => curve.name === line.curve.name);
    if (index < 0) return;
    this.#curve.value = String(index);
    this.#listIntervals();
    const distances = this.#points().map((point) => Math.abs(Math.log(point.interval / interval)));
    this.#interval.value = String(distances.indexOf(Math.min(...distances)));
    this.#find();
  }

  #points() {
    return this.#lines[Number(this.#curve.value)]?.curve.observed ?? [];
  }

  #listIntervals() {
    render(
      this.#points().map(
        (_, index) => html`<option value=${index}>${describeBounds(intervalBounds(this.#points(), index))}</option>`,
      ),
      this.#interval,
    );
    this.#interval.value = "0";
  }

  #clear() {
    this.#inFlight?.abort();
    this.found = null;
    render(nothing, byId("examples-note"));
    render(nothing, byId("examples-found"));
  }

  async #find() {
    this.#clear();
    const controller = new AbortController();
    this.#inFlight = controller;
    const { curve, version, label } = this.#lines[Number(this.#curve.value)];
    const bounds = intervalBounds(this.#points(), Number(this.#interval.value));
    const request = {
      path: "v1/overview/examples",
      query: {
        min_seconds: bounds.least / SECOND,
        max_seconds: bounds.most / SECOND,
        model_version: version,
        n: EXAMPLES,
        ...(curve.name === ALL ? {} : { [this.#by]: curve.name }),
      },
    };
    try {
      const response = await sendRequest(request, controller.signal);
      if (this.#inFlight !== controller) return;
      this.found = { request, response };
      show(response, label, bounds);
    } catch (error) {
      if (this.#inFlight === controller) {
        render(failure(error.message, () => this.#find()), byId("examples-note"));
      }
    }
  }
}

const describeBounds = ({ least, most }) => `${formatDuration(least)} to ${formatDuration(most)}`;

function show({ users, searched_users: searched }, label, bounds) {
  const found = users.length === 0 ? "None" : pluralize(users.length, "example");
  const note =
    `${found} among ${pluralize(searched, "customer")} with the latest events: ${label}, ` +
    `${describeBounds(bounds)} since the last event.`;
  render(note, byId("examples-note"));
  render(
    users.map(
      ({ user_id: user, query_time: queryTime, last_event_at: last }) => html`<li>
        <a href="customers.html#${new URLSearchParams({ user, query_time: queryTime })}">${user}</a>
        <span class="note">on ${formatInstant(Date.parse(queryTime))} UTC, last event ${formatInstant(
          Date.parse(last),
        )}</span>
      </li>`,
    ),
    byId("examples-found"),
  );
}

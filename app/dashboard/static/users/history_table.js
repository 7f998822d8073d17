/** The history as a table: what the plot shows, for everyone. */

import { formatDuration, formatInstant, formatPercent } from "../shell/format.js";
import { byId, element, itemLink } from "../shell/html.js";

const ORDERS = {
  // Unread events, which have no weight, come last.
  weight: (one, other) => (other.weight ?? -1) - (one.weight ?? -1) || other.at - one.at,
  age: (one, other) => other.at - one.at,
};
const WITHOUT_WEIGHT = { later: "after the query time", unread: "not read" };

export class HistoryTable {
  #body = byId("history-events");
  #order = "weight";
  #events = [];
  #items = new Map();

  /** `point(event)` is called with the event under the pointer, or null. */
  constructor(point) {
    for (const button of document.querySelectorAll("[data-order]")) {
      button.addEventListener("click", () => {
        this.#order = button.dataset.order;
        this.#render();
      });
    }
    this.#body.addEventListener("pointerover", (hover) => {
      const row = hover.target.closest("tr");
      point(row ? this.#events[Number(row.dataset.place)] : null);
    });
    this.#body.addEventListener("pointerleave", () => point(null));
  }

  /** Show events as `weightedHistory` gives them; `items` knows titles by id. */
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
    const places = this.#events.map((_, place) => place);
    places.sort((one, other) => ORDERS[this.#order](this.#events[one], this.#events[other]));
    this.#body.replaceChildren(...places.map((place) => this.#row(place, heaviest)));
    byId("history-note").textContent = summary(this.#events);
  }

  #row(place, heaviest) {
    const event = this.#events[place];
    return element(
      "tr",
      { class: event.part, "data-place": place },
      element("td", {}, itemLink(this.#items.get(event.itemId)?.title, event.itemId)),
      element("td", {}, event.action ?? "–"),
      element(
        "td",
        { class: "number", title: `${formatInstant(event.at)} UTC` },
        event.age < 0 ? `in ${formatDuration(-event.age)}` : formatDuration(event.age),
      ),
      element(
        "td",
        { class: "number weight" },
        ...(event.weight === null
          ? [WITHOUT_WEIGHT[event.part]]
          : [bar(event.weight / heaviest), element("span", { class: "percent" }, formatPercent(event.weight))]),
      ),
    );
  }
}

function bar(share) {
  return element("meter", { min: 0, max: 1, value: share, "aria-hidden": "true" });
}

function summary(events) {
  const count = (part) => events.filter((event) => event.part === part).length;
  const [read, later, unread] = ["read", "later", "unread"].map(count);
  const sentences = [`${read} read by the model`];
  if (unread > 0) sentences.push(`${unread} not read (unknown item, unused action, or too old)`);
  if (later > 0) sentences.push(`${later} after the query time`);
  return `${sentences.join(", ")}.`;
}

// @ts-check
/** The card of who would be recommended the chosen item, at a few instants. */

import { formatDay, formatPercent, pluralize } from "../shell/format.js";
import { byId, html, nothing, render } from "../shell/html.js";
import { table } from "../shell/tables.js";

const STEPS = [
  [7, "a week"],
  [30, "30 days"],
  [91, "a quarter"],
];

export class RecipientsCard {
  /** @param {(query: {at: string | null, step_days: number}) => void} request */
  constructor(request) {
    render(
      STEPS.map(([days, name]) => html`<option value=${days}>${name}</option>`),
      byId("recipients-step"),
    );
    byId("recipients-step").value = "30";
    byId("recipients-find").addEventListener("click", () =>
      request({
        // The end of the day; without one, the end of the training data.
        at: byId("recipients-at").value ? `${byId("recipients-at").value}T23:59:59Z` : null,
        step_days: Number(byId("recipients-step").value),
      }),
    );
  }

  /** Removes the answer for another item. */
  clear() {
    render(nothing, byId("recipients-note"));
    render(nothing, byId("recipients-found"));
  }

  /** Shows why there is no answer. */
  showMissing(why) {
    this.clear();
    render(why, byId("recipients-note"));
  }

  /**
   * Shows the response of `GET /v1/items/{id}/recipients`.
   *
   * @param {any} response
   */
  show({ model_version: version, instants }) {
    const note =
      `As ${version} recommends: of the customers with the latest events before each instant, at most 50. ` +
      "Who has the item already is not recommended it again.";
    render(note, byId("recipients-note"));
    render(instants.map(instantList), byId("recipients-found"));
  }
}

const instantList = ({ query_time: queryTime, sampled_users: users, listed, share_of_top_10: share, recipients }) =>
  html`<section>
    <h3>${formatDay(Date.parse(queryTime))}</h3>
    <p>${
      share === null
        ? "No customer has an event before this instant that the model knows."
        : html`<strong>${formatPercent(share)}</strong> of ${pluralize(users, "customer")} would see the item
            among their 10 best, ${pluralize(listed, "customer")} among their 100 best.`
    }</p>
    ${
      recipients.length === 0
        ? nothing
        : table({
            caption: `Customers with the best ranks on ${formatDay(Date.parse(queryTime))}`,
            columns: ["Rank", "Customer"],
            rows: recipients.map((recipient) => [recipient.rank, customerLink(recipient, queryTime)]),
          })
    }
  </section>`;

const customerLink = ({ user_id: user }, queryTime) =>
  html`<a href="customers.html#${new URLSearchParams({ user, query_time: queryTime, exclude_seen: "true" })}">${user}</a>`;

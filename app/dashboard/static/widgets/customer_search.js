// @ts-check
/** A combobox that finds customers by the first letters of their ids. */

import { listUsers } from "../shell/api.js";
import { formatDay, pluralize } from "../shell/format.js";
import { html } from "../shell/html.js";
import { Combobox } from "./combobox.js";

const OFFERED = 50;
/** The service counts no more events of a user in a list. */
const MOST_COUNTED = 1000;

/** How many events a listed user has, such as "26 events". */
export const formatEventCount = (events) =>
  `${pluralize(events, "event")}${events === MOST_COUNTED ? " or more" : ""}`;

/** @typedef {{user_id: string, events?: number, last_event_at?: string}} Option */

/** @type {import("./combobox.js").Source<Option>} */
const CUSTOMERS = {
  label: "Customers",
  offersAll: true,
  async find(prefix, signal) {
    const users = await listUsers(prefix, OFFERED, signal);
    // An id without stored events is a new customer's.
    const isKnown = prefix === "" || users.some((user) => user.user_id === prefix);
    return isKnown ? users : [...users, { user_id: prefix }];
  },
  keyOf: ({ user_id: userId }) => userId,
  textOf: ({ user_id: userId }) => userId,
  show: ({ user_id: userId, events, last_event_at: last }) =>
    html`<span class="id">${userId}</span><span class="note">${
      events === undefined || last === undefined
        ? "not among the stored customers"
        : `${formatEventCount(events)} to ${formatDay(Date.parse(last))}`
    }</span>`,
  describe: (options) => pluralize(options.length, "customer"),
};

/** @extends {Combobox<Option>} */
export class CustomerSearch extends Combobox {
  /**
   * @param {any} input a text field with an id, labelled by an element outside it
   * @param {object} options
   * @param {(userId: string) => void} options.choose
   */
  constructor(input, { choose }) {
    super(input, CUSTOMERS, { choose: ({ user_id: userId }) => choose(userId) });
  }
}

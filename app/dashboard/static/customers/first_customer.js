// @ts-check
/** The customer that the page opens where its address names none. */

import { listUsers } from "../shell/api.js";

const LISTED = 100;
const MOST_EVENTS = 200;

/**
 * Chooses one of the first customers: the one with the longest history that one screen can hold.
 *
 * @returns {Promise<string | null>} null if there are no customers
 */
export async function chooseCustomer() {
  const users = await listUsers("", LISTED);
  if (users.length === 0) return null;
  return users.reduce((best, user) => (isBetter(user, best) ? user : best)).user_id;
}

/** Whether a customer has more events than another, up to a number, or fewer beyond it. */
function isBetter({ events: one }, { events: other }) {
  if (one > MOST_EVENTS || other > MOST_EVENTS) return one < other;
  return one > other;
}

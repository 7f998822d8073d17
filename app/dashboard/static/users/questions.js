/** What this view asks of the service. */

import { call } from "../shell/api.js";

/** The most items that a sweep answers at each instant. */
const MOST_SWEPT = 100;

/** The top-n at an instant (milliseconds since 1970), with the weights of every head. */
export function recommend(state, signal) {
  return call("v1/recommendations", { body: { ...question(state), explain: "heads" }, signal });
}

/** What the score of one item owes to each of the events attended to most. */
export function occlude(state, signal) {
  const { explain_item_id } = state;
  const body = { ...question(state), explain: "occlusion", explain_item_id };
  return call("v1/recommendations", { body, signal });
}

/** Weights and top-n at many instants, in one request. */
export function sweepOver({ state, instants }, signal) {
  const body = {
    ...whose(state),
    query_times: instants.map((at) => new Date(at).toISOString()),
    n: Math.min(state.n, MOST_SWEPT),
    exclude_seen: state.exclude_seen,
  };
  return call("v1/attention", { body, signal });
}

/** Equal for states that one sweep answers. */
export const sweepKey = (state) =>
  JSON.stringify([state.user, state.history, state.n, state.exclude_seen]);

/** Nobody is shown these answers, so they must not count as shown. */
function question(state) {
  const { query_time: at, n, exclude_seen, query_time_withheld } = state;
  const query_time = new Date(at).toISOString();
  return { ...whose(state), query_time, n, exclude_seen, query_time_withheld, shown: false };
}

const whose = ({ user, history }) => (history === null ? { user_id: user } : { history });

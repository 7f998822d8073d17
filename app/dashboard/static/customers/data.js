// @ts-check
/** The state of the Customers page in its link, and its requests. */

import { call } from "../shell/api.js";
import { choice, flag, instant, integer, list, Permalink, text } from "../shell/permalink.js";
import { readTarget, writeTarget } from "./linked.js";
import { pastedHistory } from "./pasted_history.js";

export const LINK = new Permalink({
  user: text(),
  /** A pasted history in place of a user, as the API takes it. */
  history: pastedHistory(),
  /** Null until the history is loaded. */
  query_time: instant(),
  n: integer(1, 100, 10),
  exclude_seen: flag(false),
  query_time_withheld: flag(false),
  /** The version that answers; null for the one that serves this customer. */
  model_version: text(),
  /** A head's number from 1, or null for the mean over heads. */
  head: integer(1, 64),
  speed: choice("medium", "slow", "fast"),
  /** What the list is compared with: another point in time, or another version. */
  compare_time: instant(),
  compare_version: text(),
  /** The span that is averaged. */
  from: instant(),
  until: instant(),
  /** The part of the time axis that is drawn; null for all of it. */
  axis_from: instant(),
  axis_until: instant(),
  /** The item, basket or event that is pinned. */
  pin: { defaultValue: null, read: readTarget, write: writeTarget },
  /** The instants of the baskets that are open. */
  open: list([]),
});

/** The state of the address bar; a span or a part of the axis without both ends, in order, is left out. */
export function readLink() {
  const state = LINK.read();
  const hasBoth = state.from !== null && state.until !== null;
  const isAxis = state.axis_from !== null && state.axis_until !== null && state.axis_from < state.axis_until;
  return {
    ...state,
    ...(hasBoth ? {} : { from: null, until: null }),
    ...(isAxis ? {} : { axis_from: null, axis_until: null }),
  };
}

/** What a state of another history does not keep. */
export const OTHER_HISTORY = {
  user: null,
  history: null,
  compare_time: null,
  from: null,
  until: null,
  axis_from: null,
  axis_until: null,
  pin: null,
  open: [],
};

/** Whether two states have the same history. */
export const isSameHistory = (one, other) =>
  one.user === other.user && JSON.stringify(one.history) === JSON.stringify(other.history);

/** The name of a state's customer. */
export const userLabel = (state) => state.user ?? "a pasted history";

/**
 * The body of `POST /v1/attention` for a state at some instants.
 *
 * @param {any} state
 * @param {number[]} instants
 */
export const toSweepBody = (state, instants) => ({
  ...toSubject(state),
  query_times: instants.map((at) => new Date(at).toISOString()),
  n: state.n,
  exclude_seen: state.exclude_seen,
  query_time_withheld: state.query_time_withheld,
  weights_of: "read",
  ...(state.head === null ? {} : { head: state.head }),
});

export const requestSweep = ({ state, instants }, signal) =>
  call("v1/attention", { body: toSweepBody(state, instants), signal });

/**
 * The body of `POST /v1/recommendations` at the state's query time. `shown: false`: no customer sees
 * these recommendations, so they must not count as impressions.
 */
export const toBody = (state) => ({
  ...toSubject(state),
  query_time: new Date(state.query_time).toISOString(),
  n: state.n,
  exclude_seen: state.exclude_seen,
  query_time_withheld: state.query_time_withheld,
  shown: false,
});

/** Requests the reasons of the items at the state's query time. */
export const explain = (state, signal) =>
  call("v1/recommendations", { body: { ...toBody(state), explain: "reasons" }, signal });

/** Requests an item's score without each basket of the history. */
export const leaveOutBaskets = (state, itemId) =>
  call("v1/recommendations", {
    body: { ...toBody(state), explain: "occlusion", occlusion_unit: "basket", explain_item_id: itemId },
  });

const toSubject = ({ user, history, model_version }) => ({
  ...(history === null ? { user_id: user } : { history }),
  ...(model_version === null ? {} : { model_version }),
});

/** When other versions began to serve; none where the caller may not see them. */
export async function loadSwaps(signal) {
  const { changes } = await call("v1/models/changes", { query: { limit: 1000 }, signal });
  // A change of traffic names the version that goes on serving.
  return changes.filter(({ change, version }) => change !== "traffic" && version);
}

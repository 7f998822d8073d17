// @ts-check
/** The state of the Customers page in its link, and its requests. */

import { call } from "../shell/api.js";
import { DAY, HOUR, SECOND } from "../shell/format.js";
import { choice, flag, instant, integer, list, Permalink, text } from "../shell/permalink.js";
import { readTarget, writeTarget } from "./linked.js";
import { pastedEvents, pastedHistory } from "./pasted_history.js";

const MOST_INSTANTS = 200;
/** A unit is taken if the span has so many of it. */
const LEAST_STEPS = 24;
const UNITS = [7 * DAY, DAY, HOUR, 60 * SECOND];
/** Of the span after the last event, and at least and at most. */
const AFTER_LAST = { share: 0.25, least: 30 * DAY, most: 120 * DAY };

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
  /** The item, basket or event that is pinned. */
  pin: { defaultValue: null, read: readTarget, write: writeTarget },
  /** The instants of the baskets that are open. */
  open: list([]),
});

/** Whether two states have the same history. */
export const isSameHistory = (one, other) =>
  one.user === other.user && JSON.stringify(one.history) === JSON.stringify(other.history);

/** The name of a state's customer. */
export const userLabel = (state) => state.user ?? "a pasted history";

/**
 * @typedef {object} Span the instants of the time axis, in milliseconds
 * @property {number} first
 * @property {number} end
 * @property {number | null} last the last event; null where there is none
 * @property {number} [events] how many are stored; not of a pasted history
 */

/**
 * The span of a state's history: from its first event until some time after the last.
 *
 * @returns {Promise<Span>}
 */
export async function loadSpan({ user, history }, signal) {
  if (history !== null) {
    const events = pastedEvents(history);
    return toSpan(events[0].at, events[events.length - 1].at);
  }
  const path = `v1/users/${encodeURIComponent(user)}`;
  const {
    events,
    first_event_at: first,
    stored_events: stored,
  } = await call(path, { query: { limit: 1 }, signal });
  if (events.length === 0) return toSpan(null, null);
  return { ...toSpan(Date.parse(first), Date.parse(events[0].timestamp)), events: stored };
}

function toSpan(first, last) {
  if (last === null) {
    const now = Math.floor(Date.now() / SECOND) * SECOND;
    return { first: now - 365 * DAY, end: now + AFTER_LAST.least, last };
  }
  const { share, least, most } = AFTER_LAST;
  return { first, end: last + Math.min(most, Math.max(least, (last - first) * share)), last };
}

/**
 * The instants of a sweep over a span, and some given ones. They are whole weeks, days, hours or
 * seconds apart: the model reads the hour and the weekday of a query time, and steps of 2.6 days would
 * show that rhythm as noise.
 *
 * @param {Span} span
 * @param {(number | null)[]} given instants in or out of the span; null is left out
 * @returns {number[]} ascending
 */
export function sweepInstants({ first, end, last }, given) {
  const unit = UNITS.find((one) => (end - first) / one >= LEAST_STEPS) ?? SECOND;
  const step = unit * Math.max(1, Math.ceil((end - first) / unit / (MOST_INSTANTS - 1)));
  // One of them comes just after the last event.
  const anchor = last === null ? first : last + SECOND;
  const start = anchor - Math.floor((anchor - first) / step) * step;
  const count = Math.floor((end - start) / step) + 1;
  const spaced = Array.from({ length: count }, (_, index) => Math.ceil((start + index * step) / SECOND) * SECOND);
  return [...new Set([...spaced, ...given.filter((at) => at !== null)])].sort((a, b) => a - b);
}

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
  return changes;
}

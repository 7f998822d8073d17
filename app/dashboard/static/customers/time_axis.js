// @ts-check
/** The time axis of a customer: the span of the history or a part of it, and the instants swept. */

import { call, listModels } from "../shell/api.js";
import { DAY, HOUR, MINUTE, SECOND } from "../shell/format.js";
import { clampInstant } from "../shell/instants.js";
import { pastedEvents } from "./pasted_history.js";

const MOST_INSTANTS = 200;
/** A unit is taken if the span has so many of it. */
const LEAST_STEPS = 24;
const UNITS = [7 * DAY, DAY, HOUR, MINUTE];
/** Of the span after the last event, and at least and at most. */
const AFTER_LAST = { share: 0.25, least: 30 * DAY, most: 120 * DAY };
/** From the last event to the point in time that a customer opens with. */
const LATER = 7 * DAY;
/** The shortest part of the axis that can be drawn. */
const SHORTEST = 6 * HOUR;

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
  if (events.length === 0) return spanWithoutEvents(await findEndOfData(signal));
  return { ...toSpan(Date.parse(first), Date.parse(events[0].timestamp)), events: stored };
}

/**
 * Where to begin: a week after the last event, or now if that is earlier; without an event a month
 * before the end of the axis.
 *
 * @param {Span} span
 */
export function chooseQueryTime({ last, end }) {
  if (last === null) return end - AFTER_LAST.least;
  const now = Math.floor(Date.now() / SECOND) * SECOND;
  return clampInstant(Math.max(last + SECOND, Math.min(last + LATER, now)));
}

/** The end of the data that the serving model learned from; now where it is not known. */
async function findEndOfData(signal) {
  const now = Math.floor(Date.now() / SECOND) * SECOND;
  try {
    const serving = (await listModels(signal)).find((model) => model.is_serving);
    return serving?.data_window ? Date.parse(serving.data_window.last_at) : now;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return now;
  }
}

/** The year before an instant, and some time after it. */
const spanWithoutEvents = (at) => ({ first: at - 365 * DAY, end: at + AFTER_LAST.least, last: null });

/** @returns {Span} */
function toSpan(first, last) {
  const { share, least, most } = AFTER_LAST;
  const after = Math.min(most, Math.max(least, (last - first) * share));
  return { first, end: clampInstant(last + after), last };
}

/**
 * The instants of a sweep over a span, and some given ones. They are whole weeks, days, hours,
 * minutes or seconds apart: the model reads the hour and the weekday of a query time, and steps of 2.6 days would
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
  const anchor = last === null ? first : clampInstant(last + SECOND);
  const start = anchor - Math.floor((anchor - first) / step) * step;
  const count = Math.floor((end - start) / step) + 1;
  const spaced = Array.from({ length: count }, (_, index) => Math.ceil((start + index * step) / SECOND) * SECOND);
  return [...new Set([...spaced, ...given.filter((at) => at !== null)])].sort((a, b) => a - b);
}

/**
 * The whole axis: the span of the history, and the instants in use beyond it.
 *
 * @param {any} state
 * @param {{first: number, end: number}} span
 */
export function findWhole({ query_time, compare_time }, { first, end }) {
  const used = [query_time, compare_time].filter((at) => at !== null);
  return { first: Math.min(first, ...used), end: Math.max(end, ...used) };
}

/**
 * What the axis shows: the part that the state names, or all of it.
 *
 * @param {any} state
 * @param {{first: number, end: number}} span
 */
export function findAxis(state, span) {
  const { axis_from: first, axis_until: end } = state;
  return first !== null && end !== null ? { first, end } : findWhole(state, span);
}

/** Whether a part of the axis is the shortest that can be drawn. */
export const isShortest = ({ first, end }) => end - first <= SHORTEST;

/**
 * The part of the axis that is longer or shorter by a factor, with an instant at the same place of it.
 *
 * @param {{first: number, end: number}} axis
 * @param {{first: number, end: number}} span the whole axis
 * @param {{around: number, factor: number}} change
 * @returns {{axis_from: number | null, axis_until: number | null}} nulls for the whole axis
 */
export function zoom({ first, end }, span, { around, factor }) {
  const whole = span.end - span.first;
  const length = Math.max((end - first) * factor, Math.min(SHORTEST, whole));
  if (length >= whole) return { axis_from: null, axis_until: null };
  const place = Math.min(1, Math.max(0, (around - first) / (end - first)));
  const from = Math.min(Math.max(around - place * length, span.first), span.end - length);
  return { axis_from: Math.round(from), axis_until: Math.round(from + length) };
}

/** The same part of the axis, moved so that an instant lies in it. */
export function moveInto(state, at) {
  const { axis_from: from, axis_until: until } = state;
  if (from === null || until === null || (at >= from && at <= until)) return {};
  const half = (until - from) / 2;
  return {
    axis_from: clampInstant(Math.round(at - half)),
    axis_until: clampInstant(Math.round(at + half)),
  };
}

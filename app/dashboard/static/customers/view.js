// @ts-check
/** What every card of the page shows. */

import { findAxis } from "./time_axis.js";
import { formatLongDay, TimeScale } from "./time_scale.js";

const NARROW = 600;
const LABELS = { wide: 196, narrow: 116 };
const NUMBERS = { wide: 104, narrow: 52 };

/**
 * @typedef {object} View
 * @property {import("./sweep.js").Sweep} sweep
 * @property {number} index of the swept instant that is shown
 * @property {number} queryTime
 * @property {{sweep: import("./sweep.js").Sweep, index: number, label: string} | null} other what the
 *   list is compared with
 * @property {number | null} compareTime
 * @property {{from: number, until: number} | null} span indices of instants that are averaged
 * @property {(width: number) => TimeScale} scaleFor the time axis for a chart of so many pixels
 * @property {Set<number>} open the instants of open baskets
 * @property {number} n the number of ranks
 * @property {string | null} user null for a pasted history
 * @property {boolean} excludeSeen whether items of the history are left out of the list
 * @property {{at: number, version: string}[]} swaps
 * @property {(itemId: string) => string} nameOf
 * @property {number | null} storedEvents of the user; null for a pasted history
 */

/** The time axis of a sweep, the same in every chart. */
function scaleForSpan({ first, end }) {
  return (width) => {
    const kind = width < NARROW ? "narrow" : "wide";
    return new TimeScale(first, end, LABELS[kind], width - NUMBERS[kind]);
  };
}

/**
 * What the cards show of a state.
 *
 * @param {any} state
 * @param {object} loaded
 * @param {import("./sweep.js").Sweep | null} loaded.sweep
 * @param {import("./sweep.js").Sweep | null} loaded.otherSweep that of the version it is compared with
 * @param {import("./time_axis.js").Span | null} loaded.span
 * @param {{at: number, version: string}[]} loaded.swaps
 * @param {(itemId: string) => string} loaded.nameOf
 * @returns {any} a `View`, whose sweep is null while none has arrived
 */
export function buildView(state, { sweep, otherSweep, span, swaps, nameOf }) {
  return {
    sweep,
    index: sweep === null ? 0 : sweep.nearest(state.query_time),
    queryTime: state.query_time,
    compareTime: state.compare_version === null ? state.compare_time : null,
    other: sweep === null ? null : findOther(state, sweep, otherSweep),
    span: sweep === null ? null : findAveraged(state, sweep),
    scaleFor: scaleForSpan(findAxis(state, span ?? { first: 0, end: 1 })),
    open: new Set(state.open.map((text) => Date.parse(text))),
    n: state.n,
    user: state.history === null ? state.user : null,
    excludeSeen: state.exclude_seen,
    swaps,
    nameOf,
    storedEvents: span?.events ?? null,
  };
}

/** What the list is compared with: another version at this instant, or this one at another instant. */
function findOther({ query_time, compare_time, compare_version }, sweep, otherSweep) {
  if (compare_version !== null) {
    if (otherSweep === null) return null;
    const index = otherSweep.nearest(query_time);
    return { sweep: otherSweep, index, label: `version ${otherSweep.version}` };
  }
  if (compare_time === null) return null;
  return { sweep, index: sweep.nearest(compare_time), label: formatLongDay(compare_time) };
}

function findAveraged({ from, until }, sweep) {
  if (from === null || until === null) return null;
  // A link may have them in any order.
  return { from: sweep.nearest(Math.min(from, until)), until: sweep.nearest(Math.max(from, until)) };
}

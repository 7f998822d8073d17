// @ts-check
/**
 * Formats instants, durations and numbers. Inside the page instants and durations are milliseconds;
 * times are UTC.
 */

import { parseInstant } from "./instants.js";

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** @type {[number, string][]} */
const UNITS = [
  [365 * DAY, "y"],
  [DAY, "d"],
  [HOUR, "h"],
  [MINUTE, "min"],
  [SECOND, "s"],
];

/** A duration in its two leading units, such as "3 d 4 h". */
export function formatDuration(duration) {
  const index = UNITS.findIndex(([unit]) => duration >= unit);
  if (index < 0) return withUnit(0, "s");
  const [unit, name] = UNITS[index];
  const whole = withUnit(Math.floor(duration / unit), name);
  if (index + 1 === UNITS.length) return whole;
  const [smaller, smallerName] = UNITS[index + 1];
  const rest = Math.floor((duration % unit) / smaller);
  return rest ? `${whole} ${withUnit(rest, smallerName)}` : whole;
}

// A number and its unit stay on one line.
const withUnit = (number, unit) => `${number}\u00a0${unit}`;

/** An instant as "2011-12-09 12:50:00". */
export const formatInstant = (at) => toFieldValue(at).replace("T", " ");

/** The day of an instant, as "2011-12-09". */
export const formatDay = (at) => toFieldValue(at).slice(0, 10);

/** An instant as the value of a datetime-local field. */
export const toFieldValue = (at) => new Date(at).toISOString().slice(0, 19);

/** Parses the value of a datetime-local field as UTC; null if it is incomplete or not of the years 1 to 9999. */
export function parseFieldValue(text) {
  const at = parseInstant(text.length === 16 ? `${text}:00Z` : `${text}Z`);
  return Number.isNaN(at) ? null : at;
}

/** A share of 1 in percent; small ones with more digits. */
export function formatPercent(share) {
  const percents = share * 100;
  if (percents > 0 && percents < 0.01) return "< 0.01 %";
  return `${percents.toFixed(percents < 1 ? 2 : 1)} %`;
}

/** A count with separated thousands: 805,810. The data of `Intl` take 30 ms to load. */
export const formatCount = (number) =>
  String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");

/** A count with its noun: "1 event", "2 events". */
export const pluralize = (number, noun) =>
  `${formatCount(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A number with a fixed count of decimals, and a minus sign in place of a hyphen. */
export const formatDecimals = (number, decimals) => number.toFixed(decimals).replace("-", "−");

/** Likewise, with a sign before every number. */
export const formatSigned = (number, decimals) =>
  `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(decimals)}`;

/** A metric such as NDCG, to four decimals; a dash for null or undefined. */
export const formatMetric = (number) =>
  number === null || number === undefined ? "–" : number.toFixed(4);

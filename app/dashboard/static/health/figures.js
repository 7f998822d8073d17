/** Rates, shares and times as a person reads them; a dash where there is none. */

import { formatDuration, formatPercent } from "../shell/format.js";

const digits = (number, most) => number.toFixed(number >= 100 ? 0 : number >= 10 ? 1 : most);

/** So many a second. */
export const perSecond = (rate) => (rate === null ? "–" : `${digits(rate, 2)}\u00a0/s`);

/** A share of one. */
export const share = (part) => (part === null ? "–" : formatPercent(part));

/** A time in seconds, whether of a microsecond or of a month. */
export function duration(seconds) {
  if (seconds === null) return "–";
  if (seconds < 0.9995) return `${digits(seconds * 1000, 1)}\u00a0ms`;
  return seconds < 60 ? `${digits(seconds, 2)}\u00a0s` : formatDuration(seconds * 1000);
}

// @ts-check
/** The time axis that the charts of a customer share: instants to pixels, and its labels. */

import { DAY, HOUR, MINUTE } from "../shell/format.js";

const LEAST_PIXELS = 74;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** Steps below a month, in milliseconds. */
const SHORT = [MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
/** Steps from a month on, in months. */
const LONG = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000];
const MONTH = 30 * DAY;

/** A linear scale from instants (milliseconds) to pixels. */
export class TimeScale {
  /**
   * @param {number} first
   * @param {number} last
   * @param {number} left the pixel of `first`
   * @param {number} right that of `last`
   */
  constructor(first, last, left, right) {
    this.first = first;
    this.last = Math.max(last, first + 1);
    this.left = left;
    this.right = right;
  }

  /** The pixel of an instant. */
  x(at) {
    return this.left + ((at - this.first) / (this.last - this.first)) * (this.right - this.left);
  }

  /** The pixel of an instant; that of the nearest end for one outside of the scale. */
  clampedX(at) {
    return Math.min(this.right, Math.max(this.left, this.x(at)));
  }

  /** Whether an instant is within the scale. */
  has(at) {
    return at >= this.first && at <= this.last;
  }

  /** The instant of a pixel, within the scale. */
  at(x) {
    const share = (x - this.left) / (this.right - this.left);
    return this.first + Math.min(1, Math.max(0, share)) * (this.last - this.first);
  }

  /**
   * Round instants with their labels, as many as there is room for.
   *
   * @returns {{at: number, label: string}[]}
   */
  get ticks() {
    const most = Math.max(2, (this.right - this.left) / LEAST_PIXELS);
    const least = (this.last - this.first) / most;
    const short = SHORT.find((step) => step >= least);
    if (short !== undefined && least <= SHORT[SHORT.length - 1]) return this.#short(short);
    return this.#long(LONG.find((months) => months * MONTH >= least) ?? LONG[LONG.length - 1]);
  }

  #short(step) {
    const ticks = [];
    for (let at = Math.ceil(this.first / step) * step; at <= this.last; at += step) {
      const text = new Date(at).toISOString();
      ticks.push({ at, label: step < DAY ? text.slice(11, 16) : formatShortDay(at) });
    }
    return ticks;
  }

  #long(months) {
    const ticks = [];
    const start = new Date(this.first);
    const from = start.getUTCFullYear() * 12 + start.getUTCMonth();
    for (let month = Math.ceil(from / months) * months; ; month += months) {
      const at = startOfMonth(month);
      if (!(at <= this.last)) return ticks;
      const year = String(Math.floor(month / 12));
      if (at >= this.first) {
        ticks.push({ at, label: month % 12 === 0 || months >= 12 ? year : MONTHS[month % 12] });
      }
    }
  }
}

/** The start of a month, counted from January of the year 0. `Date.UTC` would take 11 for 1911. */
const startOfMonth = (month) => new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1);

/** A day as "5 Oct". */
function formatShortDay(at) {
  const day = new Date(at);
  return `${day.getUTCDate()} ${MONTHS[day.getUTCMonth()]}`;
}

/** A day as "5 Oct 2011". */
export const formatLongDay = (at) => `${formatShortDay(at)} ${new Date(at).getUTCFullYear()}`;

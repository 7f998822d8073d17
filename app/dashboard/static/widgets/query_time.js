// @ts-check
/** The control of the query time: a slider, a field and buttons that step it. */

import {
  DAY,
  formatDay,
  formatDuration,
  formatInstant,
  HOUR,
  parseFieldValue,
  SECOND,
  toFieldValue,
} from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";

const SLIDER_STEPS = 1000;

/**
 * Buttons that move an instant: label, and milliseconds.
 *
 * @type {[string, number][]}
 */
export const STEPS = [
  ["−30 d", -30 * DAY],
  ["−1 d", -DAY],
  ["−1 h", -HOUR],
  ["+1 h", HOUR],
  ["+1 d", DAY],
  ["+30 d", 30 * DAY],
];

/**
 * @typedef {object} Span
 * @property {number} first the earliest useful query time
 * @property {number | null} last the last event
 * @property {number} end the latest useful query time
 * @property {number} start where to begin
 */

/**
 * The useful query times for events, oldest first: from the second event until half the length of
 * the history after the last one, at least 30 days.
 *
 * @param {{at: number}[]} events
 * @returns {Span}
 */
export function queryTimeSpan(events) {
  if (events.length === 0) {
    const now = Date.now();
    return { first: now - 365 * DAY, last: null, end: now + 365 * DAY, start: now };
  }
  const oldest = events[0].at;
  const last = events[events.length - 1].at;
  return {
    first: events[Math.min(1, events.length - 1)].at,
    last,
    end: last + Math.max((last - oldest) / 2, 30 * DAY),
    start: last + SECOND,
  };
}

/** Fills `#query-time-steps`, listens to `#query-time-slider` and `#query-time-field`. */
export class QueryTimeControl {
  #slider = byId("query-time-slider");
  #field = byId("query-time-field");
  #sinceLast = byId("since-last");
  #span = queryTimeSpan([]);
  /** @type {number[] | null} */
  #stops = null;
  #at = this.#span.start;

  /** @param {(at: number) => void} move called whenever the user moves the query time */
  constructor(move) {
    const go = (at) => {
      this.show(at);
      move(at);
    };
    this.#slider.max = SLIDER_STEPS;
    this.#slider.addEventListener("input", () => go(this.#fromSlider()));
    this.#field.addEventListener("input", () => {
      const at = parseFieldValue(this.#field.value);
      // The field keeps its text: rewriting it would disturb typing.
      if (at !== null) {
        this.#show(at);
        move(at);
      }
    });
    const step = (label, act) => html`<button type="button" @click=${act}>${label}</button>`;
    render(
      [
        ...STEPS.map(([label, by]) => step(label, () => go(this.#at + by))),
        step("just after the last event", () => go(this.#span.start)),
      ],
      byId("query-time-steps"),
    );
  }

  /**
   * Sets the span of the slider. With `stops`, ordered instants of the span, the slider stops at
   * these only; field and buttons still reach every instant.
   *
   * @param {Span} span
   * @param {number[] | null} [stops]
   */
  setSpan(span, stops = null) {
    this.#span = span;
    this.#stops = stops;
    this.#slider.max = stops === null ? SLIDER_STEPS : stops.length - 1;
    byId("slider-first").textContent = formatDay(span.first);
    byId("slider-last").textContent = formatDay(span.end);
  }

  /** Shows an instant in the slider and the field. */
  show(at) {
    this.#show(at);
    this.#field.value = toFieldValue(at);
  }

  #show(at) {
    this.#at = at;
    const { first, end, last } = this.#span;
    this.#slider.value = Math.round(((at - first) / (end - first)) * this.#slider.max);
    const words = last === null ? "" : describeDistance(at - last);
    this.#sinceLast.textContent = words;
    this.#slider.setAttribute("aria-valuetext", `${formatInstant(at)} UTC, ${words}`);
  }

  #fromSlider() {
    const { first, end } = this.#span;
    if (this.#stops !== null) return this.#stops[Number(this.#slider.value)];
    const at = first + ((end - first) * Number(this.#slider.value)) / SLIDER_STEPS;
    return Math.ceil(at / SECOND) * SECOND;
  }
}

function describeDistance(duration) {
  return duration < 0
    ? `${formatDuration(-duration)} before the last event`
    : `${formatDuration(duration)} after the last event`;
}

/** The control for the query time: a slider, a field and steps, all saying the same instant. */

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
import { byId, element } from "../shell/html.js";

const SLIDER_STEPS = 1000;
/** How far a step moves an instant, with the words on its button. */
export const STEPS = [
  ["−30 d", -30 * DAY],
  ["−1 d", -DAY],
  ["−1 h", -HOUR],
  ["+1 h", HOUR],
  ["+1 d", DAY],
  ["+30 d", 30 * DAY],
];

/** The instants that are worth asking about, and where to begin, for events oldest first. */
export function queryTimeSpan(events) {
  if (events.length === 0) {
    const now = Date.now();
    return { first: now - 365 * DAY, last: null, end: now + 365 * DAY, start: now };
  }
  const oldest = events[0].at;
  const last = events.at(-1).at;
  return {
    first: events[Math.min(1, events.length - 1)].at,
    last,
    end: last + Math.max((last - oldest) / 2, 30 * DAY),
    start: last + SECOND,
  };
}

export class QueryTimeControl {
  #slider = byId("query-time-slider");
  #field = byId("query-time-field");
  #sinceLast = byId("since-last");
  #span = queryTimeSpan([]);
  #stops = null;
  #at = this.#span.start;

  /** `move(at)` is called whenever the reader moves the query time. */
  constructor(move) {
    const go = (at) => {
      this.show(at);
      move(at);
    };
    this.#slider.max = SLIDER_STEPS;
    this.#slider.addEventListener("input", () => go(this.#fromSlider()));
    this.#field.addEventListener("input", () => {
      const at = parseFieldValue(this.#field.value);
      // The field is left as it is: rewriting it would disturb whoever is typing.
      if (at !== null) {
        this.#show(at);
        move(at);
      }
    });
    const step = (label, act) => {
      const button = element("button", { type: "button" }, label);
      button.addEventListener("click", act);
      return button;
    };
    byId("query-time-steps").replaceChildren(
      ...STEPS.map(([label, by]) => step(label, () => go(this.#at + by))),
      step("just after the last event", () => go(this.#span.start)),
    );
  }

  /**
   * Let the slider cover another user's span. With `stops`, instants of the span in order, it stops
   * at these alone; field and steps still go anywhere.
   */
  setSpan(span, stops = null) {
    this.#span = span;
    this.#stops = stops;
    this.#slider.max = stops === null ? SLIDER_STEPS : stops.length - 1;
    byId("slider-first").textContent = formatDay(span.first);
    byId("slider-last").textContent = formatDay(span.end);
  }

  /** Show an instant everywhere. */
  show(at) {
    this.#show(at);
    this.#field.value = toFieldValue(at);
  }

  #show(at) {
    this.#at = at;
    const { first, end, last } = this.#span;
    this.#slider.value = Math.round(((at - first) / (end - first)) * this.#slider.max);
    const words = last === null ? "" : sinceLast(at - last);
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

function sinceLast(duration) {
  return duration < 0
    ? `${formatDuration(-duration)} before the last event`
    : `${formatDuration(duration)} after the last event`;
}

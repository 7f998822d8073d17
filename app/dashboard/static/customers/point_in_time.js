// @ts-check
/** The controls of the point in time: the field, the slider on the time axis, and the axis's zoom. */

import { formatInstant, parseFieldValue, toFieldValue } from "../shell/format.js";
import { byId } from "../shell/html.js";

const FACTOR = 3;
/** The thumb of the slider, in pixels. */
const THUMB = 16;
/** How many stops a key moves the slider. @type {Record<string, number>} */
const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

/** Shows the point in time, and calls back when it is moved or the axis is zoomed. */
export class PointInTime {
  #slider = byId("query-time-slider");
  #field = byId("query-time-field");
  #buttons = {
    in: byId("zoom-in"),
    out: byId("zoom-out"),
    whole: byId("zoom-whole"),
  };
  /** The swept instants, and the indices of the first and the last of them on the axis. */
  #instants = [0];
  #stops = { first: 0, last: 0 };
  #index = 0;

  /**
   * @param {object} handlers
   * @param {(at: number) => void} handlers.slide called with an instant near a swept one
   * @param {(at: number) => void} handlers.enter called with any instant
   * @param {(factor: number) => void} handlers.zoom called with how much longer the axis becomes
   */
  constructor({ slide, enter, zoom }) {
    this.#slider.addEventListener("input", () => slide(Number(this.#slider.value)));
    this.#slider.addEventListener("keydown", (event) => {
      const { altKey, ctrlKey, metaKey } = event;
      const index = altKey || ctrlKey || metaKey ? null : this.#indexAfter(event.key);
      if (index === null) return;
      event.preventDefault();
      slide(this.#instants[index]);
    });
    this.#field.addEventListener("change", () => {
      const at = parseFieldValue(this.#field.value);
      if (at !== null) enter(at);
    });
    this.#buttons.in.addEventListener("click", () => zoom(1 / FACTOR));
    this.#buttons.out.addEventListener("click", () => zoom(FACTOR));
    this.#buttons.whole.addEventListener("click", () => zoom(Infinity));
    for (const id of ["basket-rows", "rank-lines"]) {
      const zoomByWheel = (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        zoom(event.deltaY < 0 ? 1 / FACTOR : FACTOR);
      };
      byId(id).addEventListener("wheel", zoomByWheel, { passive: false, capture: true });
    }
  }

  get stops() {
    return this.#stops;
  }

  zoomIn() {
    this.#buttons.in.click();
  }

  zoomOut() {
    this.#buttons.out.click();
  }

  /** Shows an instant, and where on the slider it lies; without an index in the field only. */
  show(at, index = /** @type {number | null} */ (null)) {
    this.#field.value = toFieldValue(at);
    if (index === null) return;
    this.#index = index;
    this.#slider.value = this.#instants[index];
    this.#slider.setAttribute("aria-valuetext", `${formatInstant(at)} UTC`);
  }

  /**
   * Makes the slider stop at the swept instants on the axis, which it lies over. Its values are
   * milliseconds, so the thumb is where the instant is, however far apart the stops are.
   *
   * @param {number[]} instants
   * @param {import("./time_scale.js").TimeScale} scale
   */
  align(instants, scale) {
    const isShown = (at) => scale.has(at);
    const [first, last] = [instants.findIndex(isShown), instants.findLastIndex(isShown)];
    // Another part of the axis, whose instants have not arrived yet.
    if (first < 0) return;
    this.#instants = instants;
    this.#stops = { first, last };
    this.#slider.min = instants[first];
    this.#slider.max = instants[last];
    const { style } = this.#slider;
    // The middle of the thumb moves between the ends of the axis.
    const [left, right] = [scale.x(instants[first]), scale.x(instants[last])];
    style.setProperty("margin-left", `${left - THUMB / 2}px`);
    style.setProperty("width", `${right - left + THUMB}px`);
  }

  /** Disables what cannot be zoomed any further. */
  showZoom({ isWhole, isShortest }) {
    this.#buttons.in.disabled = isShortest;
    this.#buttons.out.disabled = isWhole;
    this.#buttons.whole.disabled = isWhole;
  }

  /** The stop that a key leads to; null for a key of no meaning to a slider. */
  #indexAfter(key) {
    const { first, last } = this.#stops;
    if (key === "Home") return first;
    if (key === "End") return last;
    const by = KEYS[key];
    return by === undefined ? null : Math.min(last, Math.max(first, this.#index + by));
  }
}

// @ts-check
/** Calls a function at an interval while the page is visible. */

import { SECOND } from "../shell/format.js";

/** Calls `poll` repeatedly, one call at a time, while the page is visible and not paused. */
export class Poller {
  #poll;
  #onPauseChange;
  #interval;
  #timer = 0;
  #isPolling = false;
  #isPaused = false;

  /**
   * @param {object} options
   * @param {() => Promise<void>} options.poll
   * @param {() => void} options.onPauseChange
   * @param {number} options.interval seconds from one poll to the next
   */
  constructor({ poll, onPauseChange, interval }) {
    this.#poll = poll;
    this.#onPauseChange = onPauseChange;
    this.#interval = interval;
    document.addEventListener("visibilitychange", () => this.#run());
  }

  get isPaused() {
    return this.#isPaused;
  }

  /** Sets the interval in seconds, and polls at once. */
  set interval(seconds) {
    this.#interval = seconds;
    this.#run();
  }

  pause() {
    this.#isPaused = true;
    clearTimeout(this.#timer);
    this.#onPauseChange();
  }

  resume() {
    this.#isPaused = false;
    this.#onPauseChange();
    this.#run();
  }

  async #run() {
    clearTimeout(this.#timer);
    if (this.#isPolling || !this.#isActive) return;
    this.#isPolling = true;
    const began = performance.now();
    await this.#poll();
    this.#isPolling = false;
    if (!this.#isActive) return;
    const rest = this.#interval * SECOND - (performance.now() - began);
    this.#timer = window.setTimeout(() => this.#run(), Math.max(0, rest));
  }

  get #isActive() {
    return !this.#isPaused && document.visibilityState === "visible";
  }
}

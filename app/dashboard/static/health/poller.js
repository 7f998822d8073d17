/** Asks again and again, for as long as somebody looks. */

import { SECOND } from "../shell/format.js";

/**
 * Calls `poll()` every `interval` seconds, one at a time, while the page is visible and it is not
 * paused; at once when it comes back. `tell()` is called whenever it pauses or goes on.
 */
export class Poller {
  #poll;
  #tell;
  #interval;
  #timer = null;
  #isPolling = false;
  #isPaused = false;

  constructor({ poll, tell, interval }) {
    this.#poll = poll;
    this.#tell = tell;
    this.#interval = interval;
    document.addEventListener("visibilitychange", () => this.#go());
  }

  get isPaused() {
    return this.#isPaused;
  }

  /** Seconds from one poll to the next. */
  set interval(seconds) {
    this.#interval = seconds;
    this.#go();
  }

  pause() {
    this.#isPaused = true;
    clearTimeout(this.#timer);
    this.#tell();
  }

  resume() {
    this.#isPaused = false;
    this.#tell();
    this.#go();
  }

  async #go() {
    clearTimeout(this.#timer);
    if (this.#isPolling || !this.#isOn) return;
    this.#isPolling = true;
    const began = performance.now();
    await this.#poll();
    this.#isPolling = false;
    if (!this.#isOn) return;
    const rest = this.#interval * SECOND - (performance.now() - began);
    this.#timer = setTimeout(() => this.#go(), Math.max(0, rest));
  }

  get #isOn() {
    return !this.#isPaused && document.visibilityState === "visible";
  }
}

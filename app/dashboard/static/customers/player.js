// @ts-check
/** Plays the query time: moves it on by itself between clicks on `#play`. */

import { byId } from "../shell/html.js";

/** Milliseconds per instant; at "fast" an instant per frame of the screen. */
const PAUSES = { slow: 500, medium: 180, fast: 0 };
/** For those who prefer reduced motion: few steps, far apart. */
const REDUCED_MOTION = { pause: 1500, instants: 10 };

export class Player {
  #button = byId("play");
  #speed = byId("speed");
  #advance;
  #onStop;
  /** @type {number | null} */
  #frame = null;
  #steppedAt = 0;

  /**
   * @param {object} options
   * @param {(instants: number, step: {isFirst: boolean}) => boolean} options.advance moves on by so
   *   many instants; returns whether there are more
   * @param {() => void} options.onStop called whenever playing ends
   * @param {(speed: string) => void} options.changeSpeed
   */
  constructor({ advance, onStop, changeSpeed }) {
    this.#advance = advance;
    this.#onStop = onStop;
    this.#button.addEventListener("click", () => this.toggle());
    this.#speed.addEventListener("change", () => changeSpeed(this.#speed.value));
  }

  get isPlaying() {
    return this.#frame !== null;
  }

  showSpeed(speed) {
    this.#speed.value = speed;
  }

  /** Enables the button, or stops and disables it. */
  enable(isPossible) {
    if (!isPossible) this.stop();
    this.#button.disabled = !isPossible;
  }

  toggle() {
    if (this.isPlaying) this.stop();
    else if (!this.#button.disabled) this.#play();
  }

  stop() {
    if (this.#frame === null) return;
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    this.#label("▶", "Play");
    this.#onStop();
  }

  #play() {
    this.#label("❚❚", "Pause");
    this.#frame = 0;
    this.#step(performance.now(), true);
  }

  #step(now, isFirst) {
    const isReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pause = isReduced ? REDUCED_MOTION.pause : PAUSES[this.#speed.value];
    // Set before the step, which may stop the player.
    this.#frame = requestAnimationFrame((next) => this.#step(next, false));
    if (!isFirst && now - this.#steppedAt < pause) return;
    this.#steppedAt = now;
    if (!this.#advance(isReduced ? REDUCED_MOTION.instants : 1, { isFirst })) this.stop();
  }

  #label(symbol, word) {
    this.#button.firstElementChild.textContent = symbol;
    this.#button.lastElementChild.textContent = word;
  }
}

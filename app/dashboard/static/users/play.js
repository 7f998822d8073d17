/** Moves the query time along by itself. */

import { byId } from "../shell/html.js";

/** Milliseconds per instant. */
const PAUSES = { slow: 400, medium: 150, fast: 60 };
/** For whoever asked for less motion: few steps that stand still in between. */
const CALM = { pause: 1500, instants: 10 };

export class Player {
  #button = byId("play");
  #speed = byId("speed");
  #advance;
  #stopped;
  #timer = null;

  /**
   * `advance(instants, {isFirst})` moves on by so many instants and answers whether there is further
   * to go; `stopped()` is called when playing has ended, for whatever reason; `changeSpeed(speed)`
   * for another choice of it.
   */
  constructor({ advance, stopped, changeSpeed }) {
    this.#advance = advance;
    this.#stopped = stopped;
    this.#button.addEventListener("click", () => (this.isPlaying ? this.stop() : this.#play()));
    this.#speed.addEventListener("change", () => changeSpeed(this.#speed.value));
  }

  get isPlaying() {
    return this.#timer !== null;
  }

  /** Let the control say a speed. */
  showSpeed(speed) {
    this.#speed.value = speed;
  }

  /** Whether there is anything to play. */
  enable(isPossible) {
    if (!isPossible) this.stop();
    this.#button.disabled = this.#speed.disabled = !isPossible;
  }

  /** Stand still, if it moves. */
  stop() {
    if (!this.isPlaying) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#label("▶", "Play");
    this.#stopped();
  }

  #play() {
    this.#label("❚❚", "Pause");
    this.#step(true);
  }

  #step(isFirst) {
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pause = isCalm ? CALM.pause : PAUSES[this.#speed.value];
    // Taken before the step: the step may stop the playing.
    this.#timer = setTimeout(() => this.#step(false), pause);
    if (!this.#advance(isCalm ? CALM.instants : 1, { isFirst })) this.stop();
  }

  #label(sign, word) {
    this.#button.firstElementChild.textContent = sign;
    this.#button.lastElementChild.textContent = word;
  }
}

/**
 * Follows a control that moves faster than the service answers.
 *
 * The first request is sent at once; those that follow wait for a short pause, one is under way at
 * a time, and of those that queue up meanwhile only the newest is sent. So the display keeps
 * following while a slider is dragged, never goes back in time, and the service is not flooded.
 */
export class Latest {
  #ask;
  #show;
  #fail;
  #pause;
  #wanted = null;
  #timer = null;
  #underWay = null;
  #sentAt = -Infinity;

  /** `ask(request, signal)` is answered to `show(answer, request)`, its failure to `fail(error)`. */
  constructor({ ask, show, fail, pause = 60 }) {
    this.#ask = ask;
    this.#show = show;
    this.#fail = fail;
    this.#pause = pause;
  }

  /** Whether nothing waits and nothing is under way. */
  get isIdle() {
    return this.#wanted === null && this.#underWay === null;
  }

  /** Ask for this next, in place of whatever waits. */
  want(request) {
    this.#wanted = request;
    if (this.#underWay) return;
    const rest = this.#sentAt + this.#pause - performance.now();
    this.#timer ??= setTimeout(() => this.#send(), Math.max(0, rest));
  }

  /** Forget what waits, and drop the answer of what is under way. */
  drop() {
    clearTimeout(this.#timer);
    this.#timer = this.#wanted = null;
    this.#underWay?.abort();
    this.#underWay = null;
  }

  async #send() {
    this.#timer = null;
    this.#sentAt = performance.now();
    const request = this.#wanted;
    this.#wanted = null;
    const controller = new AbortController();
    this.#underWay = controller;
    try {
      const answer = await this.#ask(request, controller.signal);
      if (this.#underWay === controller) this.#show(answer, request);
    } catch (error) {
      if (this.#underWay === controller) this.#fail(error);
    }
    if (this.#underWay !== controller) return;
    this.#underWay = null;
    if (this.#wanted) this.want(this.#wanted);
  }
}

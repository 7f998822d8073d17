/**
 * Several kinds of questions side by side: of each kind the newest counts, and the page is busy until
 * the last of them is answered.
 */

import { clearProblem, showBusy, showProblem, showStale } from "../shell/page.js";
import { isAnswer } from "./ask.js";

export class Questions {
  #underWay = new Map();
  #failed = new Map();

  /** Ask one kind of question, in place of the one under way: `show(await ask(signal))`. */
  async renew(kind, ask, show) {
    this.#underWay.get(kind)?.abort();
    const controller = new AbortController();
    this.#underWay.set(kind, controller);
    const isNewest = () => this.#underWay.get(kind) === controller;
    showStale();
    showBusy(true);
    try {
      const answer = await ask(controller.signal);
      if (isNewest()) await show(answer);
      if (isNewest()) this.#failed.delete(kind);
    } catch (error) {
      if (isNewest()) this.#failed.set(kind, error);
    }
    if (isNewest()) this.#underWay.delete(kind);
    this.#settle();
  }

  /** Forget one kind: nobody wants its answer any more. */
  drop(kind) {
    this.#underWay.get(kind)?.abort();
    this.#underWay.delete(kind);
    this.#failed.delete(kind);
    this.#settle();
  }

  #settle() {
    if (this.#underWay.size > 0) return;
    const [problem] = this.#failed.values();
    if (problem) showProblem(problem);
    else clearProblem();
    showBusy(false);
  }
}

/** An answer, or why the service has none, in its words: `{answer, refusal}`, either of them null. */
export async function told(asking) {
  try {
    return { answer: await asking, refusal: null };
  } catch (error) {
    if (!isAnswer(error)) throw error;
    return { answer: null, refusal: error.message };
  }
}

/** What became of retraining, run by run. */

import { formatCount, formatInstant } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { checksTable } from "./checks.js";
import { versionCode } from "./roles.js";

const MEANINGS = {
  running: "under way",
  promoted: "promoted",
  kept: "kept the champion",
  passed: "passed, in a dry run",
  failed: "failed",
  abandoned: "abandoned",
};

export class RunList {
  #place = byId("runs");
  #linkTo;

  /** `linkTo(candidate, champion)` answers the address that compares two versions. */
  constructor({ linkTo }) {
    this.#linkTo = linkTo;
  }

  /** Show runs, newest first; those that are open stay open. */
  show(runs, models) {
    const open = new Set([...this.#place.querySelectorAll("details[open]")].map((one) => one.dataset.run));
    const published = new Set(models.map((model) => model.version));
    byId("runs-note").textContent =
      runs.length === 0 ? "No retraining has run yet; kairos retrain makes one." : "";
    this.#place.replaceChildren(...runs.map((run) => this.#item(run, published, open.has(run.run_id))));
  }

  #item(run, published, isOpen) {
    const summary = element(
      "summary",
      {},
      element("span", { class: `result ${run.result}` }, MEANINGS[run.result] ?? run.result),
      ` ${formatInstant(Date.parse(run.started_at)).slice(0, 16)} UTC`,
      run.reason ? element("span", { class: "note block" }, run.reason) : null,
    );
    const details = element("details", { open: isOpen, "data-run": run.run_id }, summary, this.#facts(run));
    if (published.has(run.candidate) && published.has(run.champion)) {
      const link = element("a", { href: this.#linkTo(run.candidate, run.champion) }, "Compare the two");
      details.append(element("p", {}, link));
    }
    if (run.decision) details.append(checksTable(run.decision));
    return element("li", {}, details);
  }

  #facts(run) {
    const facts = [
      ["Run", element("code", {}, run.run_id)],
      ["Champion", versionCode(run.champion)],
      ["Candidate", versionCode(run.candidate)],
      ["Recipe", run.recipe ?? "–"],
      ["Questions", run.questions === null ? "–" : formatCount(run.questions)],
      ["Finished", run.finished_at === null ? "–" : `${formatInstant(Date.parse(run.finished_at))} UTC`],
    ];
    return element(
      "dl",
      { class: "account" },
      ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    );
  }
}

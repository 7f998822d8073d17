/** What this page has heard in the last fifteen minutes. */

import { MINUTE, SECOND } from "../shell/format.js";
import { measure } from "./panels.js";
import { byInstance, increase, ratesOf, snapshotOf } from "./rates.js";

export const KEPT = 15 * MINUTE;

/** Over how long rates are taken, by the seconds between polls: replicas take turns in answering. */
export const windowOf = (interval) => Math.max(MINUTE, 4 * interval * SECOND);

const REFUSED = JSON.stringify(["kairos_model_swaps_total", { result: "refused" }]);

export class Record {
  #snapshots = [];
  #refusals = [];
  #since = -Infinity;
  /** `{at, values}` for each poll that told rates, oldest first; values are those of `measure`. */
  points = [];
  /** What was measured last, over the last minute or since the start. */
  rates = null;
  values = null;

  /** Take in an answer of `GET /v1/metrics`, heard at `heardAt`, one poll in `interval` seconds. */
  take(answer, { heardAt, interval }) {
    const snapshot = snapshotOf(answer, heardAt);
    this.#noteRefusals(snapshot);
    const window = windowOf(interval);
    this.#since = heardAt - window;
    this.#snapshots = [...needed(this.#snapshots, this.#since), snapshot];
    this.rates = ratesOf(this.#snapshots, { now: heardAt, window });
    this.values = measure(this.rates);
    this.points = this.points.filter(({ at }) => at >= heardAt - KEPT);
    if (!this.rates.isSinceStart) this.points.push({ at: heardAt, values: this.values });
  }

  /** The newest answer of every process heard of within the window of the rates. */
  get newest() {
    return [...byInstance(this.#snapshots).values()]
      .map((own) => own.at(-1))
      .filter(({ heardAt }) => heardAt >= this.#since);
  }

  /** Versions that did not open within the time kept. */
  get refusals() {
    return this.#refusals.reduce((sum, { grown }) => sum + grown, 0);
  }

  #noteRefusals(snapshot) {
    const before = byInstance(this.#snapshots).get(snapshot.instance)?.at(-1);
    const grown =
      before === undefined
        ? 0
        : increase(before.counts.get(REFUSED)?.value ?? 0, snapshot.counts.get(REFUSED)?.value ?? 0);
    const recent = this.#refusals.filter(({ at }) => at >= snapshot.heardAt - KEPT);
    this.#refusals = [...recent, { at: snapshot.heardAt, grown }];
  }
}

/** Those since an instant, and of every process not forgotten the last one before. */
function needed(snapshots, since) {
  return [...byInstance(snapshots).values()].flatMap((own) => {
    if (own.at(-1).heardAt < since - KEPT) return [];
    const first = own.findIndex(({ heardAt }) => heardAt >= since);
    return first < 0 ? own.slice(-1) : own.slice(Math.max(0, first - 1));
  });
}

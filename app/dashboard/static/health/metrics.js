// @ts-check
/**
 * Rates, shares and quantiles of the last minute, computed from responses of `GET /v1/metrics` as
 * PromQL's rate(), sum by () and histogram_quantile() do.
 *
 * They are computed in the page because they depend on its successive polls: the service only has
 * the current counters. Behind a proxy each response is of one replica, so differences are taken
 * between responses of the same process (`instance`), and the rates of all processes are summed.
 */

import { MINUTE, SECOND } from "../shell/format.js";
import { measure } from "./panels.js";

/** How long points are kept, in milliseconds. */
export const HISTORY_LENGTH = 15 * MINUTE;
/** How many intervals between polls a point of a chart covers. */
const POINT = 3;

/**
 * @typedef {{name: string, labels: Record<string, string>, value: number}} Sample
 *
 * @typedef {object} Snapshot one response, prepared for subtraction
 * @property {string} instance the process
 * @property {number} startedAt milliseconds, on the clock of the process
 * @property {number} at likewise; comparable only with other times of the same process
 * @property {number} receivedAt milliseconds, on the page's clock
 * @property {Map<string, Sample>} counts counters and histogram series, by name and labels
 * @property {Sample[]} gauges
 *
 * @typedef {object} Span two snapshots of one process to take differences between
 * @property {Snapshot | null} before null: since the start of the process
 * @property {Snapshot} after
 * @property {number} seconds between the two
 * @property {boolean} isYoung whether the process started within the window
 *
 * @typedef {(labels: Record<string, string>) => boolean} LabelFilter
 *
 * @typedef {{at: number, values: Record<string, (number | null)[]>}} HistoryPoint
 */

/** The metrics that the page received in the last 15 minutes. */
export class MetricsHistory {
  /** @type {Snapshot[]} */
  #snapshots = [];
  /** @type {{at: number, refused: number}[]} */
  #refusals = [];
  #since = -Infinity;
  /** @type {HistoryPoint[]} those of the charts, oldest first, each of the last few polls */
  points = [];
  /** @type {Rates} the newest rates: of the window, or since the start of the processes */
  rates = new Rates([]);
  /** @type {Record<string, (number | null)[]>} the newest result of `measure` */
  values = {};

  /**
   * Adds a response of `GET /v1/metrics`.
   *
   * @param {any} response
   * @param {{receivedAt: number, interval: number}} timing in milliseconds, and seconds between polls
   */
  add(response, { receivedAt, interval }) {
    const snapshot = toSnapshot(response, receivedAt);
    this.#countRefusals(snapshot);
    // Several intervals long: replicas take turns in answering.
    const window = Math.max(MINUTE, 4 * interval * SECOND);
    this.#since = receivedAt - window;
    this.#snapshots = [...dropOld(this.#snapshots, this.#since), snapshot];
    this.rates = computeRates(this.#snapshots, { now: receivedAt, window });
    this.values = measure(this.rates);
    this.points = this.points.filter(({ at }) => at >= receivedAt - HISTORY_LENGTH);
    const rates = computeRates(this.#snapshots, { now: receivedAt, window: (POINT + 0.5) * interval * SECOND });
    // Spans that grow from poll to poll would draw a decline after any burst, such as the page's own.
    if (!rates.isSinceStart && rates.seconds > (POINT - 0.5) * interval) {
      this.points.push({ at: receivedAt, values: measure(rates) });
    }
  }

  /** The newest snapshot of every process within the window. */
  get newest() {
    return [...groupByInstance(this.#snapshots).values()]
      .map((own) => own[own.length - 1])
      .filter(({ receivedAt }) => receivedAt >= this.#since);
  }

  /** The number of versions refused in the last 15 minutes. */
  get refusals() {
    return this.#refusals.reduce((sum, { refused }) => sum + refused, 0);
  }

  /** @param {Snapshot} snapshot */
  #countRefusals(snapshot) {
    const before = groupByInstance(this.#snapshots).get(snapshot.instance)?.at(-1);
    const count = (of) => of.counts.get(REFUSED)?.value ?? 0;
    const refused = before === undefined ? 0 : counterIncrease(count(before), count(snapshot));
    const recent = this.#refusals.filter(({ at }) => at >= snapshot.receivedAt - HISTORY_LENGTH);
    this.#refusals = [...recent, { at: snapshot.receivedAt, refused }];
  }
}

const REFUSED = JSON.stringify(["kairos_model_swaps_total", { result: "refused" }]);

/** Keeps the snapshots since an instant, and of every recent process the last one before it. */
function dropOld(snapshots, since) {
  return [...groupByInstance(snapshots).values()].flatMap((own) => {
    if (own[own.length - 1].receivedAt < since - HISTORY_LENGTH) return [];
    const first = own.findIndex(({ receivedAt }) => receivedAt >= since);
    return first < 0 ? own.slice(-1) : own.slice(Math.max(0, first - 1));
  });
}

/**
 * Prepares a response of `GET /v1/metrics` for subtraction.
 *
 * @param {any} response
 * @param {number} receivedAt milliseconds, on the page's clock
 * @returns {Snapshot}
 */
export function toSnapshot(response, receivedAt) {
  const counts = new Map();
  const gauges = [];
  for (const { kind, samples } of response.metrics) {
    for (const sample of samples) {
      if (kind === "gauge") gauges.push(sample);
      else counts.set(JSON.stringify([sample.name, sample.labels]), sample);
    }
  }
  return {
    instance: response.instance,
    startedAt: Date.parse(response.started_at),
    at: Date.parse(response.at),
    receivedAt,
    counts,
    gauges,
  };
}

/** The increase of a counter; one that decreased was reset to zero in between. */
const counterIncrease = (before, after) => (after < before ? after : after - before);

/**
 * Snapshots by process, in the order received.
 *
 * @param {Snapshot[]} snapshots
 * @returns {Map<string, Snapshot[]>}
 */
function groupByInstance(snapshots) {
  const instances = new Map();
  for (const snapshot of snapshots) {
    if (!instances.has(snapshot.instance)) instances.set(snapshot.instance, []);
    instances.get(snapshot.instance).push(snapshot);
  }
  return instances;
}

/**
 * Computes the rates at `now` over the last `window` milliseconds.
 *
 * For each process that responded in the window, the difference is taken from its first snapshot
 * there to its last, or from the snapshot before the window if there is only one. A process with a
 * single snapshot is left out unless it started within the window. If that leaves none, the rates
 * are those since the start of each process, and `isSinceStart` is true.
 *
 * @param {Snapshot[]} snapshots
 * @param {{now: number, window: number}} period
 */
export function computeRates(snapshots, { now, window }) {
  const spans = [];
  for (const own of groupByInstance(snapshots).values()) {
    const span = toSpan(own, { now, window });
    if (span !== null && span.seconds > 0) spans.push(span);
  }
  const recent = spans.filter((span) => span.before !== null || span.isYoung);
  return new Rates(recent.length > 0 ? recent : spans);
}

/**
 * The span of a process; null if it did not respond within the window.
 *
 * @param {Snapshot[]} own
 * @param {{now: number, window: number}} period
 * @returns {Span | null}
 */
function toSpan(own, { now, window }) {
  const after = own[own.length - 1];
  if (after.receivedAt < now - window) return null;
  const earlier = own.slice(0, -1);
  const first = earlier.find(({ receivedAt }) => receivedAt >= now - window);
  const before = first ?? earlier.at(-1) ?? null;
  return {
    before,
    after,
    seconds: (after.at - (before?.at ?? after.startedAt)) / SECOND,
    isYoung: after.at - after.startedAt <= window,
  };
}

/** Increases per second of all counters, summed over processes. */
export class Rates {
  /** @type {Map<string, {name: string, labels: Record<string, string>, rate: number}>} */
  #series = new Map();

  /** @param {Span[]} spans one per process */
  constructor(spans) {
    this.processes = spans.length;
    /** The length of the longest span. */
    this.seconds = Math.max(0, ...spans.map(({ seconds }) => seconds));
    this.isSinceStart = spans.every(({ before }) => before === null);
    for (const { before, after, seconds } of spans) {
      for (const [key, { name, labels, value }] of after.counts) {
        const rate = counterIncrease(before?.counts.get(key)?.value ?? 0, value) / seconds;
        const others = this.#series.get(key)?.rate ?? 0;
        this.#series.set(key, { name, labels, rate: others + rate });
      }
    }
  }

  /**
   * @param {string} name
   * @param {LabelFilter} where
   */
  *#select(name, where) {
    for (const series of this.#series.values()) {
      if (series.name === name && where(series.labels)) yield series;
    }
  }

  /**
   * sum(rate(name{where})), per second.
   *
   * @param {string} name
   * @param {LabelFilter} [where]
   */
  sum(name, where = () => true) {
    let sum = 0;
    for (const { rate } of this.#select(name, where)) sum += rate;
    return sum;
  }

  /**
   * sum by (label)(rate(name{where})), per second, by the label's value.
   *
   * @param {string} label
   * @param {string} name
   * @param {LabelFilter} [where]
   * @returns {Map<string, number>}
   */
  sumBy(label, name, where = () => true) {
    const sums = new Map();
    for (const { labels, rate } of this.#select(name, where)) {
      sums.set(labels[label], (sums.get(labels[label]) ?? 0) + rate);
    }
    return sums;
  }

  /**
   * The share of a counter's increase whose labels pass `which`, among those that pass `of`.
   *
   * @param {string} name
   * @param {LabelFilter} which
   * @param {LabelFilter} [of]
   * @returns {number | null} null without any increase
   */
  share(name, which, of = () => true) {
    const all = this.sum(name, of);
    return all === 0 ? null : this.sum(name, (labels) => of(labels) && which(labels)) / all;
  }

  /**
   * The mean of a histogram's observations.
   *
   * @param {string} name
   * @param {LabelFilter} [where]
   * @returns {number | null} null without observations
   */
  mean(name, where) {
    const count = this.sum(`${name}_count`, where);
    return count === 0 ? null : this.sum(`${name}_sum`, where) / count;
  }

  /**
   * A quantile of a histogram's observations, estimated from its buckets.
   *
   * @param {number} quantile 0 to 1
   * @param {string} name
   * @param {LabelFilter} [where]
   * @returns {number | null} null without observations
   */
  quantile(quantile, name, where) {
    const buckets = this.sumBy("le", `${name}_bucket`, where);
    return histogramQuantile(
      quantile,
      [...buckets].map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count]),
    );
  }
}

/**
 * A quantile of a histogram as Prometheus estimates it: observations are spread evenly within a
 * bucket, and those beyond the last finite bound lie on it.
 *
 * @param {number} quantile 0 to 1
 * @param {[number, number][]} buckets upper bounds, the last Infinity, with cumulative counts
 * @returns {number | null} null without observations or an infinite bound
 */
export function histogramQuantile(quantile, buckets) {
  const ordered = [...buckets].sort(([one], [other]) => one - other);
  const last = ordered[ordered.length - 1];
  if (ordered.length < 2 || last[0] !== Infinity || !(last[1] > 0)) return null;
  const rank = quantile * last[1];
  const index = ordered.findIndex(([, count]) => count >= rank);
  if (index === ordered.length - 1) return ordered[index - 1][0];
  const [bound, count] = ordered[index];
  if (index === 0 && bound <= 0) return bound;
  const [start, below] = index === 0 ? [0, 0] : ordered[index - 1];
  // A bucket is empty only where the quantile is 0.
  return count === below ? bound : start + ((bound - start) * (rank - below)) / (count - below);
}

/**
 * What counters say of the last minute, as PromQL's rate(), sum by () and histogram_quantile() do,
 * from answers of `GET /v1/metrics`.
 *
 * Behind a proxy each answer is of whichever process was reached. So differences are taken between
 * answers of one process, which its `instance` names, and the processes' rates are added up.
 */

/**
 * An answer as it can be subtracted. `heardAt` is when this page heard it, on the page's own clock:
 * that of the process, in `at`, may be another, and is only compared with itself.
 */
export function snapshotOf(answer, heardAt) {
  const counts = new Map();
  const gauges = [];
  for (const { kind, samples } of answer.metrics) {
    for (const sample of samples) {
      if (kind === "gauge") gauges.push(sample);
      else counts.set(JSON.stringify([sample.name, sample.labels]), sample);
    }
  }
  return {
    instance: answer.instance,
    startedAt: Date.parse(answer.started_at),
    at: Date.parse(answer.at),
    heardAt,
    counts,
    gauges,
  };
}

/** By how much a counter grew: one that fell began again at zero. */
export const increase = (before, after) => (after < before ? after : after - before);

/** Answers by the process that gave them, in the order they were heard in. */
export function byInstance(snapshots) {
  const instances = new Map();
  for (const snapshot of snapshots) {
    if (!instances.has(snapshot.instance)) instances.set(snapshot.instance, []);
    instances.get(snapshot.instance).push(snapshot);
  }
  return instances;
}

/**
 * The rates at `now` over the last `window` milliseconds: of every process heard of in it, from its
 * first answer there to its last, or from the one before where there is no other.
 *
 * A process heard of once tells nothing yet, unless it started within the window. Where none tells
 * anything, the rates are those since each started, and `isSinceStart`.
 */
export function ratesOf(snapshots, { now, window }) {
  const spans = [...byInstance(snapshots).values()]
    .map((own) => spanOf(own, { now, window }))
    .filter((span) => span !== null && span.seconds > 0);
  const told = spans.filter((span) => span.before !== null || span.isYoung);
  return new Rates(told.length > 0 ? told : spans);
}

/** From which to which of its own answers a process is looked at; null where it fell silent. */
function spanOf(own, { now, window }) {
  const after = own.at(-1);
  if (after.heardAt < now - window) return null;
  const earlier = own.slice(0, -1);
  const before = earlier.find(({ heardAt }) => heardAt >= now - window) ?? earlier.at(-1) ?? null;
  return {
    before,
    after,
    seconds: (after.at - (before?.at ?? after.startedAt)) / 1000,
    isYoung: after.at - after.startedAt <= window,
  };
}

/** What grew per second, in all processes together. */
export class Rates {
  #samples = new Map();

  constructor(spans) {
    /** How many processes this is of, and over how many seconds at most. */
    this.processes = spans.length;
    this.seconds = Math.max(0, ...spans.map(({ seconds }) => seconds));
    this.isSinceStart = spans.every(({ before }) => before === null);
    for (const { before, after, seconds } of spans) {
      for (const [key, { name, labels, value }] of after.counts) {
        const rate = increase(before?.counts.get(key)?.value ?? 0, value) / seconds;
        const known = this.#samples.get(key)?.rate ?? 0;
        this.#samples.set(key, { name, labels, rate: known + rate });
      }
    }
  }

  /** The rates of a metric whose labels pass. */
  *#of(name, where) {
    for (const sample of this.#samples.values()) {
      if (sample.name === name && where(sample.labels)) yield sample;
    }
  }

  /** sum(rate(name{where})), a second. */
  sum(name, where = () => true) {
    let sum = 0;
    for (const { rate } of this.#of(name, where)) sum += rate;
    return sum;
  }

  /** sum by (label)(rate(name{where})): rates by what the label says. */
  sumBy(label, name, where = () => true) {
    const sums = new Map();
    for (const { labels, rate } of this.#of(name, where)) {
      sums.set(labels[label], (sums.get(labels[label]) ?? 0) + rate);
    }
    return sums;
  }

  /** The part of a counter whose labels pass `which` among those that pass `of`; null of nothing. */
  share(name, which, of = () => true) {
    const all = this.sum(name, of);
    return all === 0 ? null : this.sum(name, (labels) => of(labels) && which(labels)) / all;
  }

  /** The mean of what a histogram observed; null where it observed nothing. */
  mean(name, where) {
    const count = this.sum(`${name}_count`, where);
    return count === 0 ? null : this.sum(`${name}_sum`, where) / count;
  }

  /** An estimated quantile of what a histogram observed; null where it observed nothing. */
  quantile(quantile, name, where) {
    const buckets = this.sumBy("le", `${name}_bucket`, where);
    return histogramQuantile(
      quantile,
      [...buckets].map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count]),
    );
  }
}

/**
 * A quantile of a histogram as Prometheus estimates it: evenly spread within the bucket it falls in.
 *
 * `buckets` are pairs of an upper bound and how many observations lie at or below it; the last bound
 * is Infinity. What lies beyond the last finite bound is taken to lie on it. Null without any.
 */
export function histogramQuantile(quantile, buckets) {
  const ordered = [...buckets].sort(([one], [other]) => one - other);
  const total = ordered.at(-1)?.[1] ?? 0;
  if (ordered.length < 2 || ordered.at(-1)[0] !== Infinity || !(total > 0)) return null;
  const rank = quantile * total;
  const place = ordered.findIndex(([, count]) => count >= rank);
  if (place === ordered.length - 1) return ordered.at(-2)[0];
  const [bound, count] = ordered[place];
  if (place === 0 && bound <= 0) return bound;
  const [start, below] = place === 0 ? [0, 0] : ordered[place - 1];
  // Only where the quantile is 0 can nothing lie in the bucket.
  return count === below ? bound : start + ((bound - start) * (rank - below)) / (count - below);
}

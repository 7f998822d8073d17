/** Test metrics as manifests and retraining runs name them. */

const WITHHELD = "_withheld";
const NAMES = {
  popular_all_time: "Popular, all time",
  popular_last_week: "Popular, last week",
  last_item_markov: "Markov, last item",
  personal_frequency: "Own most frequent",
  repeat_last: "Repeats of the last",
};
const QUESTIONS = "questions";

/** The references of the versions table, in the order of its columns. */
export const HEADLINE_REFERENCES = ["popular_all_time", "popular_last_week", "last_item_markov"];

/** A reference ranking as a person reads it. */
export const referenceName = (reference) => NAMES[reference] ?? reference.replaceAll("_", " ");

/**
 * The metrics of a manifest: `{questions, metrics: Map}` with, by the name of a metric, what the
 * model scored `given` and `withheld` the query time, and `references`: other rankings on the same
 * questions, `[name, value]`, as far as the manifest tells.
 */
export function testMetrics(metrics) {
  const names = Object.keys(metrics);
  const own = names.filter((name) => `${name}${WITHHELD}` in metrics && name !== QUESTIONS);
  const alone = names.filter(
    (name) => !name.endsWith(WITHHELD) && name !== QUESTIONS && !own.some((one) => endsWith(name, one)),
  );
  const shown = [...new Set([...own, ...alone])];
  return {
    questions: metrics[QUESTIONS] ?? null,
    metrics: new Map(
      shown.map((name) => [
        name,
        {
          given: metrics[name],
          withheld: metrics[`${name}${WITHHELD}`] ?? null,
          references: names
            .filter((other) => other !== name && other.endsWith(`_${name}`))
            .map((other) => [other.slice(0, -name.length - 1), metrics[other]]),
        },
      ]),
    ),
  };
}

const endsWith = (name, metric) => name === metric || name.endsWith(`_${metric}`);

/** The same of the rankers of a retraining run: `{metric: {ranker: value}}`, questions left out. */
export function byMetric(rankers) {
  const told = new Map();
  for (const [ranker, metrics] of Object.entries(rankers ?? {})) {
    for (const [metric, value] of Object.entries(metrics)) {
      if (metric === QUESTIONS) continue;
      if (!told.has(metric)) told.set(metric, {});
      told.get(metric)[ranker] = value;
    }
  }
  return told;
}

/** The run that trained a version, if any did. */
export const runOf = (runs, version) => runs.find((run) => run.candidate === version) ?? null;

/** The run that asked both versions the same questions, if any did. */
export const runBetween = (runs, one, other) =>
  runs.find(
    ({ candidate, champion, metrics }) =>
      metrics?.champion !== undefined &&
      metrics.challenger !== undefined &&
      ((candidate === one && champion === other) || (candidate === other && champion === one)),
  ) ?? null;

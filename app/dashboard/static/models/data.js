// @ts-check
/**
 * The service's view of its versions, and lookups in manifests and retraining runs.
 *
 * @typedef {object} Model an entry of `GET /v1/models`
 * @property {string} version
 * @property {boolean} is_current
 * @property {boolean} is_serving
 * @property {boolean} is_challenger
 * @property {boolean} is_shadow
 * @property {string | null} trained_at
 * @property {{first_at: string, last_at: string} | null} data_window
 * @property {Record<string, number> | null} metrics
 * @property {string | null} refused why the manifest cannot be read
 *
 * @typedef {{challenger: string | null, share: number, shadow: string | null}} Traffic
 *
 * @typedef {object} Change an entry of `GET /v1/models/changes`
 * @property {string} at
 * @property {string} actor
 * @property {string} change
 * @property {string | null} version
 * @property {string | null} previous_version
 * @property {string | null} reason
 * @property {Traffic | null} traffic
 *
 * @typedef {object} Decision of the gate of a retraining run
 * @property {boolean} promote
 * @property {{name: string, passed: boolean, value: number | null, threshold: number | null,
 *   sentence: string}[]} checks
 *
 * @typedef {object} Run an entry of `GET /v1/training-runs`
 * @property {string} run_id
 * @property {string} result
 * @property {string | null} reason
 * @property {string} started_at
 * @property {string | null} finished_at
 * @property {string | null} recipe
 * @property {string | null} champion
 * @property {string | null} candidate
 * @property {number | null} questions
 * @property {Record<string, Record<string, number>> | null} metrics by ranker, then by metric
 * @property {Decision | null} decision
 *
 * @typedef {object} ModelsState what is published and what serves; null for what could not be loaded
 * @property {Model[]} models newest first
 * @property {Traffic | null} traffic
 * @property {Change[] | null} changes newest first
 * @property {string | null} rollbackVersion the version that a rollback activates; null if there is none, or
 *   if the service does not state it
 * @property {Run[] | null} runs newest first
 *
 * @typedef {{epoch: number, loss: number, validation: Record<string, number>, seconds: number}} Epoch
 *
 * @typedef {object} Description the part of `GET /v1/models/{version}` that this page reads
 * @property {string} version
 * @property {any} manifest
 * @property {Epoch[] | null} epochs
 * @property {number | null} index_recall
 * @property {number | null} p95_seconds
 * @property {{shown: number, clicked: number, rate: number | null, rate_low: number | null,
 *   rate_high: number | null} | null} clicks
 * @property {{part: string, why: string}[]} missing
 *
 * @typedef {object} TestMetric
 * @property {number} given with the query time given to the model
 * @property {number | null} live with popularity counted up to each query time, where the model reads popularity
 * @property {number | null} withheld with the query time withheld
 * @property {[string, number][]} references other rankings on the same questions, by name
 */

import { describeModel, listModels, sendRequest } from "../shell/api.js";

/** The requests behind the lists. */
export const TRAFFIC = { path: "v1/models/traffic" };
export const CHANGES = { path: "v1/models/changes", query: { limit: 1000 } };
export const RUNS = { path: "v1/training-runs", query: { limit: 200 } };
/** The service opens a bundle to describe it: a long list is not requested all at once. */
const DESCRIBED_AT_ONCE = 3;

/**
 * Loads the published versions and, where they can be loaded, the traffic, the audit trail and the
 * retraining runs.
 *
 * @param {AbortSignal} signal
 * @param {(part: string, error: Error | null) => void} report called for each part but the versions; the
 *   error is null if the part was loaded
 * @returns {Promise<ModelsState>}
 */
export async function loadServing(signal, report) {
  const load = async (/** @type {string} */ part, /** @type {Promise<any>} */ request) => {
    try {
      const response = await request;
      report(part, null);
      return response;
    } catch (error) {
      report(part, error);
      return null;
    }
  };
  const [models, traffic, trail, retraining] = await Promise.all([
    listModels(signal),
    load("Traffic", sendRequest(TRAFFIC, signal)),
    load("Audit trail", sendRequest(CHANGES, signal)),
    load("Retraining runs", sendRequest(RUNS, signal)),
  ]);
  return {
    models,
    traffic,
    changes: trail?.changes ?? null,
    rollbackVersion: trail?.rollback_version ?? null,
    runs: retraining?.runs ?? null,
  };
}

/**
 * Loads the descriptions of versions, a few at a time; resolves to why one of them failed, or null.
 *
 * @param {string[]} versions
 * @param {(version: string, description: Description | null) => void} receive called for each; null
 *   for a version that was deleted or altered since it was listed
 * @param {AbortSignal} signal
 * @returns {Promise<Error | null>}
 */
export async function describeVersions(versions, receive, signal) {
  const waiting = [...versions];
  /** @type {Error | null} */
  let failure = null;
  const describe = async (/** @type {string} */ version) => {
    try {
      receive(version, await describeModel(version, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (error.status === 404 || error.status === 409) receive(version, null);
      else failure = error;
    }
  };
  const work = async () => {
    for (let version = waiting.shift(); version !== undefined; version = waiting.shift()) await describe(version);
  };
  await Promise.all(Array.from({ length: DESCRIBED_AT_ONCE }, work));
  return failure;
}

/** A change of the served versions as a row. */
export const toChangeRow = ({ at, actor, change, version, previous_version, reason }) => ({
  at,
  actor,
  change,
  version,
  previous_version,
  reason,
});

/**
 * The current version, or null.
 *
 * @param {Model[]} models
 */
export const currentVersion = (models) => models.find((model) => model.is_current)?.version ?? null;

const WITHHELD = "_withheld";

/** What a metric was measured with, in words: the point in time given, and withheld. */
export const TIME_READ = "With elapsed time";
export const TIME_IGNORED = "Ignoring elapsed time";
const LIVE = "_live";
const QUESTIONS = "questions";
/** @type {Record<string, string>} */
const REFERENCE_NAMES = {
  popular_all_time: "Popular, all time",
  popular_last_week: "Popular, last week",
  last_item_markov: "Markov, last item",
  personal_frequency: "Own most frequent",
  repeat_last: "Repeats of the last",
  counting: "Counting, frozen",
  counting_live: "Counting, live",
};

/** The references that have a column of their own, in that order. */
export const HEADLINE_REFERENCES = ["popular_all_time", "popular_last_week", "last_item_markov"];

/** The references of a retraining run, whose models read live popularity where they read any. */
export const RUN_REFERENCES = [...HEADLINE_REFERENCES, "counting_live"];

/**
 * The display name of a reference ranking.
 *
 * @param {string} reference
 */
export const referenceName = (reference) => REFERENCE_NAMES[reference] ?? reference.replaceAll("_", " ");

/**
 * Groups the test metrics of a manifest, which prefixes those of references with their names.
 *
 * @param {Record<string, number>} metrics
 */
export function groupTestMetrics(metrics) {
  const names = Object.keys(metrics).filter((name) => !name.endsWith(LIVE));
  const paired = names.filter((name) => `${name}${WITHHELD}` in metrics && name !== QUESTIONS);
  const single = names.filter(
    (name) => !name.endsWith(WITHHELD) && name !== QUESTIONS && !paired.some((one) => isOf(name, one)),
  );
  /** @type {Map<string, TestMetric>} */
  const grouped = new Map();
  for (const name of new Set([...paired, ...single])) {
    grouped.set(name, {
      given: metrics[name],
      live: metrics[`${name}${LIVE}`] ?? null,
      withheld: metrics[`${name}${WITHHELD}`] ?? null,
      references: names
        .filter((other) => other !== name && other.endsWith(`_${name}`))
        .map((other) => [other.slice(0, -name.length - 1), metrics[other]]),
    });
  }
  return { questions: metrics[QUESTIONS] ?? null, metrics: grouped };
}

/**
 * The test metrics of a manifest as rows: for each metric those of the model, then those of references.
 *
 * @param {Record<string, number>} metrics
 * @returns {{metric: string, ranking: string, value: number}[]}
 */
export const toMetricRows = (metrics) =>
  [...groupTestMetrics(metrics).metrics].flatMap(([metric, { given, live, withheld, references }]) => {
    const rankings = /** @type {[string, number | null][]} */ ([
      ["model", given],
      ["model, live popularity", live],
      ["model, ignoring elapsed time", withheld],
      ...references.map(([reference, value]) => [referenceName(reference), value]),
    ]);
    return rankings.flatMap(([ranking, value]) => (value === null ? [] : [{ metric, ranking, value }]));
  });

/** Whether a name is that of a metric, or of a reference's value of it. */
const isOf = (name, metric) => name === metric || name.endsWith(`_${metric}`);

/**
 * Regroups the metrics of a retraining run by metric, then by ranker.
 *
 * @param {Run["metrics"]} rankers
 */
export function groupByMetric(rankers) {
  /** @type {Map<string, Record<string, number>>} */
  const grouped = new Map();
  for (const [ranker, metrics] of Object.entries(rankers ?? {})) {
    for (const [metric, value] of Object.entries(metrics)) {
      if (metric === QUESTIONS) continue;
      grouped.set(metric, { ...grouped.get(metric), [ranker]: value });
    }
  }
  return grouped;
}

/**
 * The run that trained a version, or null.
 *
 * @param {Run[]} runs
 * @param {string} version
 */
export const findTrainingRun = (runs, version) => runs.find((run) => run.candidate === version) ?? null;

/**
 * The run that measured two versions on the same questions, or null.
 *
 * @param {Run[]} runs
 * @param {string} one
 * @param {string} other
 */
export const findComparingRun = (runs, one, other) =>
  runs.find(
    ({ candidate, champion, metrics }) =>
      metrics?.champion !== undefined &&
      metrics.challenger !== undefined &&
      ((candidate === one && champion === other) || (candidate === other && champion === one)),
  ) ?? null;

/**
 * What a run measured a version and the other one as, in this order.
 *
 * @param {Run} run
 * @param {string} version
 */
export const rankersOf = ({ candidate }, version) =>
  candidate === version ? ["challenger", "champion"] : ["champion", "challenger"];

/**
 * The metrics of both models on the questions of a run, with those of `version` first.
 *
 * @param {Run} run
 * @param {string} version
 */
export function compareRankers(run, version) {
  const { run_id: id } = run;
  const metrics = run.metrics ?? {};
  const [mine, theirs] = rankersOf(run, version);
  return ["", "_withheld"].flatMap((suffix) =>
    Object.entries(metrics[mine + suffix] ?? {}).flatMap(([metric, value]) =>
      metric === "questions" || metrics[theirs + suffix]?.[metric] === undefined
        ? []
        : [
            {
              test: `run ${id}`,
              metric,
              ranking: suffix === "" ? "model" : "model, ignoring elapsed time",
              mine: value,
              theirs: metrics[theirs + suffix][metric],
            },
          ],
    ),
  );
}

/** A row with a value of each of two versions, and their difference. */
export const toPairRow = ({ mine, theirs, ...of }, one, other) => ({
  ...of,
  [one]: mine,
  [other]: theirs,
  difference: mine === null || theirs === null ? null : mine - theirs,
});

/**
 * The version to compare another with by default: the one that a retraining run measured it against,
 * the current one, or the newest. Null where there is no other.
 *
 * @param {string | null} version
 * @param {ModelsState} serving
 */
export function defaultOpponent(version, { models, runs }) {
  const others = models.filter((model) => model.version !== version && model.refused === null);
  const isThere = (/** @type {string | null} */ name) => others.some((model) => model.version === name);
  const known = runs ?? [];
  const measured = known.find((run) => run.candidate === version && isThere(run.champion));
  if (measured) return measured.champion;
  const current = others.find((model) => model.is_current);
  if (current) return current.version;
  const challenging = known.find((run) => run.champion === version && isThere(run.candidate));
  return challenging?.candidate ?? others[0]?.version ?? null;
}

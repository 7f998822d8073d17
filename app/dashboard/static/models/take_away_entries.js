// @ts-check
/** What is taken away from each card of the Models page. */

import { LIST_MODELS, modelRequest } from "../shell/api.js";
import { byId } from "../shell/html.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import {
  CHANGES,
  compareRankers,
  currentVersion,
  findComparingRun,
  groupTestMetrics,
  RUNS,
  toChangeRow,
  toMetricRows,
  toPairRow,
  TRAFFIC,
} from "./data.js";
import { rolesOf } from "./versions_card.js";

/**
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").ModelsState} ModelsState
 *
 * @typedef {object} Shown what the page shows
 * @property {ModelsState} serving
 * @property {Map<string, Description | null>} descriptions
 * @property {Description | null} one the version in detail
 * @property {Description | null} other the one to compare it with
 * @property {string} metric of the table of versions
 */

/**
 * Fills the menus of the cards.
 *
 * @param {object} page
 * @param {() => Shown | null} page.shown null before the first response
 * @param {{detail: any, clicks: any}} page.cards
 */
export function offerTakeAway({ shown, cards }) {
  const offer = (id, file, read) =>
    new TakeAway(byId(id), () => {
      const page = shown();
      if (page === null) return { why: "The versions are not loaded yet." };
      return { title: headingOf(byId(id)), caption: asOf(), name: toFileName(file), chart: null, ...read(page) };
    });
  offer("serving-card", "active-versions", ({ serving }) =>
    serving.traffic === null
      ? NOT_LOADED
      : { rows: toRoleRows(serving, serving.traffic), requests: [LIST_MODELS, TRAFFIC, CHANGES] },
  );
  offer("versions-card", "versions", ({ serving, descriptions, metric }) => ({
    caption: `${asOf()} The metrics of one row are on the same test questions.`,
    rows: serving.models.map((model) => toVersionRow(model, serving.traffic, descriptions.get(model.version), metric)),
    requests: [LIST_MODELS, TRAFFIC, ...toModelRequests(descriptions)],
  }));
  const { metrics, training, windows } = cards.detail.figures;
  const ofVersion = (figure, read) => (page) => {
    const { one } = page;
    if (one === null) return { why: "No version is described." };
    if (figure.chart === null) return { why: figure.text };
    return {
      caption: `Version ${one.version}. ${figure.text}`,
      chart: figure.chart,
      requests: [modelRequest(one.version)],
      ...read(page),
    };
  };
  offer("metrics-figure", "test-metrics", ofVersion(metrics, ({ one }) => ({ rows: toMetricRows(one.manifest.metrics) })));
  offer("training-figure", "training", ofVersion(training, ({ one }) => ({ rows: one.epochs.map(toEpochRow) })));
  offer(
    "windows-figure",
    "data-windows",
    ofVersion(windows, ({ serving }) => ({ rows: toWindowRows(serving.models), requests: [LIST_MODELS] })),
  );
  offer("comparison-card", "comparison", readComparison);
  offer("clicks-card", "clicks", ({ descriptions }) => {
    const rows = toClickRows(descriptions);
    if (rows.length === 0) return { why: cards.clicks.figure.text };
    return {
      caption: cards.clicks.figure.text,
      chart: cards.clicks.figure.chart,
      rows,
      requests: rows.map(({ version }) => modelRequest(version)),
    };
  });
  offer("runs-card", "retraining-runs", ({ serving: { runs } }) =>
    runs === null ? NOT_LOADED : { rows: runs.map(toRunRow), requests: [RUNS] },
  );
  offer("trail-card", "audit-trail", ({ serving: { changes } }) =>
    changes === null ? NOT_LOADED : { rows: changes.map(toChangeRow), requests: [CHANGES] },
  );
}

const NOT_LOADED = { why: "It could not be loaded." };

/** When the lists were read, as the page shows it. */
const asOf = () => byId("as-of").textContent.replace("as of", "As of").concat(".");

/** The heading of a card or figure as text. */
const headingOf = (root) => root.querySelector("h2, h3")?.textContent.trim().replace(/\s+/g, " ");

/**
 * @param {ModelsState} serving
 * @param {import("./data.js").Traffic} traffic
 */
function toRoleRows({ models, rollbackVersion }, { challenger, share, shadow }) {
  const serving = models.find((model) => model.is_serving)?.version ?? null;
  const roles = [
    { role: "current", version: currentVersion(models), share_of_users: challenger === null ? 1 : 1 - share },
    { role: "serving here", version: serving, share_of_users: null },
    { role: "challenger", version: challenger, share_of_users: challenger === null ? null : share },
    { role: "shadow", version: shadow, share_of_users: null },
    { role: "rollback", version: rollbackVersion, share_of_users: null },
  ];
  return roles.filter(({ version }) => version !== null);
}

const toModelRequests = (descriptions) =>
  [...descriptions].flatMap(([version, description]) => (description === null ? [] : [modelRequest(version)]));

/**
 * @param {import("./data.js").Model} model
 * @param {import("./data.js").Traffic} traffic
 * @param {Description | null | undefined} description
 * @param {string} chosen the metric
 */
function toVersionRow(model, traffic, description, chosen) {
  const { version, trained_at, data_window: window } = model;
  const metrics = description?.manifest.metrics ?? model.metrics ?? {};
  return {
    version,
    roles: rolesOf(model, traffic).join("; "),
    trained_at,
    first_event_at: window?.first_at ?? null,
    last_event_at: window?.last_at ?? null,
    questions: groupTestMetrics(metrics).questions,
    ...Object.fromEntries(
      toMetricRows(metrics).flatMap(({ metric, ranking, value }) =>
        metric === chosen ? [[`${metric}, ${ranking}`, value]] : [],
      ),
    ),
  };
}

const toEpochRow = ({ epoch, loss, validation, seconds }) => ({
  epoch,
  loss,
  ...Object.fromEntries(Object.entries(validation).map(([metric, value]) => [`validation_${metric}`, value])),
  seconds,
});

const toWindowRows = (models) =>
  models.flatMap(({ version, data_window: window }) =>
    window === null ? [] : [{ version, first_event_at: window.first_at, last_event_at: window.last_at }],
  );

/** The values of two versions, those of a run that measured both and those of their own tests. */
function readComparison({ serving, one, other }) {
  if (one === null || other === null) return { why: "There is no other version to compare with." };
  const run = findComparingRun(serving.runs ?? [], one.version, other.version);
  const rows = [
    ...(run === null ? [] : compareRankers(run, one.version)),
    ...compareTests(one.manifest.metrics, other.manifest.metrics),
  ];
  return {
    caption: `${one.version} compared with ${other.version}. ${byId("comparison-summary").textContent}`,
    name: toFileName("comparison", one.version, other.version),
    rows: rows.map((row) => toPairRow(row, one.version, other.version)),
    requests: [...[one, other].map(({ version }) => modelRequest(version)), ...(run === null ? [] : [RUNS])],
  };
}

/** The metrics that both manifests hold. */
function compareTests(mine, theirs) {
  const others = toMetricRows(theirs);
  return toMetricRows(mine).flatMap(({ metric, ranking, value }) => {
    const other = others.find((row) => row.metric === metric && row.ranking === ranking);
    return other === undefined ? [] : [{ test: "own test", metric, ranking, mine: value, theirs: other.value }];
  });
}

/** @returns {{version: string}[]} */
const toClickRows = (descriptions) =>
  [...descriptions].flatMap(([version, description]) =>
    description?.clicks ? [{ version, ...description.clicks }] : [],
  );

const toRunRow = ({ run_id, result, reason, started_at, finished_at, recipe, champion, candidate, questions }) => ({
  run_id,
  result,
  reason,
  started_at,
  finished_at,
  recipe,
  champion,
  candidate,
  questions,
});

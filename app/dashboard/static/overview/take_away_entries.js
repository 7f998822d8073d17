// @ts-check
/** What is taken away from each card of the Overview page. */

import { LIST_MODELS, modelRequest } from "../shell/api.js";
import { formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import {
  compareRankers,
  groupTestMetrics,
  RUNS,
  toChangeRow,
  toMetricRows,
  toPairRow,
  TRAFFIC,
} from "../models/data.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { HEADLINE } from "./cards.js";

/** The requests of the cards. */
export const CHANGED = { path: "v1/overview/changes", query: { n: 10 } };
export const LATEST = { path: "v1/models/changes", query: { limit: 6 } };

/**
 * Fills the menus of the cards.
 *
 * @param {Map<string, {answer: any, at: number}>} answers what each card shows and when it came, by its id
 */
export function offerTakeAway(answers) {
  const offer = (id, file, read, why = "The service does not answer.") =>
    new TakeAway(byId(id), () => {
      const { answer, at } = answers.get(id) ?? { at: 0 };
      if (answer === undefined) return { why: "This card has no answer of the service to take away." };
      if (answer === null) return { why };
      const { caption, ...taken } = read(answer);
      return {
        title: byId(`${id}-heading`).textContent,
        caption: `${caption} As of ${formatInstant(at)} UTC.`,
        name: toFileName(file),
        chart: null,
        ...taken,
      };
    });
  offer("service", "readiness", (readiness) => ({
    caption: "Readiness of the service.",
    rows: Object.entries(readiness).map(([part, state]) => ({ part, state })),
    requests: [{ path: "health/ready" }],
  }));
  offer("serving", "served-version", readServing, "No model serves yet.");
  offer(
    "challenger",
    "challenger",
    readChallenger,
    "No challenger serves, and no retraining has compared two versions yet.",
  );
  offer("changing", "changing-customers", ({ users, at, until, model_version: version, compared_users: compared }) => ({
    caption:
      `Version ${version}: of ${pluralize(compared, "customer")}, those whose lists of ${at} and ${until} ` +
      "differ most; change is a share of 1.",
    rows: users.map(({ user_id, change, entered, left, events, events_between }) => ({
      user_id,
      change,
      entered,
      left,
      events,
      events_between,
    })),
    requests: [CHANGED],
  }));
  offer("latest", "latest-changes", ({ changes }) => {
    const run = answers.get("run")?.answer.runs[0];
    return {
      caption: run === undefined ? "" : `Last retraining: ${run.result}, ${run.started_at}.`,
      rows: changes.map(toChangeRow),
      requests: [LATEST, RUNS],
    };
  });
}

function readServing({ served: { version, data_window: window }, manifest: { metrics } }) {
  const rows = toMetricRows(metrics);
  const name = rows.some(({ metric }) => metric === HEADLINE) ? HEADLINE : rows[0]?.metric;
  const { questions } = groupTestMetrics(metrics);
  return {
    caption:
      `Version ${version}, trained on events until ${window.last_at}` +
      `${questions === null ? "" : `; ${pluralize(questions, "test question")}`}.`,
    rows: rows.filter(({ metric }) => metric === name),
    requests: [LIST_MODELS, modelRequest(version)],
  };
}

/** @param {import("./challenger.js").Comparison} comparison */
function readChallenger({ challenger, share, one, other, run, clicks }) {
  const measured = run === null ? [] : compareRankers(run, one);
  const clicked = clicks.length === 2 && clicks.every(Boolean) ? [toClickRow(clicks[0].rate, clicks[1].rate)] : [];
  return {
    caption:
      (challenger === null ? "No challenger serves. " : `${challenger} serves ${formatPercent(share)} of the customers. `) +
      (run === null ? "" : `Run ${run.run_id} measured both on the same ${pluralize(run.questions ?? 0, "question")}.`),
    name: toFileName("challenger", one, other),
    rows: [...measured, ...clicked].map((row) => toPairRow(row, one, other)),
    requests: [LIST_MODELS, TRAFFIC, RUNS, ...(clicks.length === 0 ? [] : [one, other].map(modelRequest))],
  };
}

const toClickRow = (mine, theirs) => ({ test: "service", metric: "click rate", ranking: "model", mine, theirs });

// @ts-check
/** What is taken away from each card of the Overview page. */

import { LIST_MODELS, modelRequest } from "../shell/api.js";
import { formatInstant, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { groupTestMetrics, toChangeRow, toMetricRows } from "../models/data.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { HEADLINE } from "./cards.js";

/** The requests of the cards. */
export const CHANGED = { path: "v1/overview/changes", query: { n: 12 } };
export const LATEST = {
  changes: { path: "v1/models/changes", query: { limit: 6 } },
  runs: { path: "v1/training-runs", query: { limit: 1 } },
};

/**
 * Fills the menus of the cards.
 *
 * @param {Map<string, {answer: any, at: number}>} answers what each card shows and when it came, by its id
 */
export function offerTakeAway(answers) {
  const offer = (id, file, read) =>
    new TakeAway(byId(id), () => {
      const { answer = null, at = 0 } = answers.get(id) ?? {};
      if (answer === null) return { why: "This card has no answer of the service to take away." };
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
  offer("serving", "served-version", readServing);
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
  offer("latest", "latest-changes", ({ changes, run }) => ({
    caption: run === null ? "No retraining has run yet." : `Last retraining: ${run.result}, ${run.started_at}.`,
    rows: changes.map(toChangeRow),
    requests: [LATEST.changes, LATEST.runs],
  }));
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

// @ts-check
/** The cards above the panels (readiness, model, retraining, newest change), and the operations. */

import { DAY, formatCount, formatDuration, formatInstant, pluralize, SECOND } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import {
  formatRate,
  formatSeconds,
  formatShare,
  isClientRequest,
  REQUEST_SECONDS,
  REQUESTS,
} from "./panels.js";

/**
 * @typedef {import("./panels.js").Status} Status
 * @typedef {import("./metrics.js").Snapshot} Snapshot
 * @typedef {[string, any]} Fact a name, and a text or template
 */

const OLD = 2 * DAY;

/**
 * Shows the status and the facts of a card.
 *
 * @param {string} id
 * @param {Status | null} status
 * @param {Fact[]} facts
 */
function showCard(id, status, facts) {
  const badge = byId(`state-${id}`);
  badge.textContent = status ?? "";
  badge.className = `state ${status ?? "none"}`;
  render(
    facts.map(([name, fact]) => html`<dt>${name}</dt><dd>${fact}</dd>`),
    byId(id),
  );
  return status;
}

const code = (text) => html`<code>${text}</code>`;
const optionalCode = (text) => (text === null ? "–" : code(text));
const instant = (rfc3339) => (rfc3339 === null ? "–" : `${formatInstant(Date.parse(rfc3339))} UTC`);

/**
 * Requests `GET /health/ready`, which needs no key, and shows the response.
 *
 * @returns {Promise<Status>}
 */
export async function showReadiness() {
  const readiness = await readReadiness();
  if (readiness === null) {
    showCard("ready", "bad", [["service", "no response"]]);
    return "bad";
  }
  const isReady = readiness.status === "ready";
  const status = isReady ? "ok" : "bad";
  showCard("ready", status, [
    ["service", isReady ? "ready" : "not ready"],
    ...["model", "database", "writes", "tasks", "process"].map((part) => /** @type {Fact} */ ([part, readiness[part]])),
  ]);
  return status;
}

/** The response of `GET /health/ready`, whatever its status code; null without one. */
async function readReadiness() {
  const url = new URL("../health/ready", document.baseURI);
  try {
    const readiness = await (await fetch(url, { headers: { Accept: "application/json" } })).json();
    return readiness.status === undefined || readiness.model === undefined ? null : readiness;
  } catch {
    return null;
  }
}

/**
 * Shows the versions that the processes serve.
 *
 * @param {Snapshot[]} newest one per process
 * @param {number} refusals versions refused in the last 15 minutes
 * @returns {Status | null}
 */
export function showModel(newest, refusals) {
  const versions = servedVersions(newest);
  const sum = (value) => newest.reduce((total, snapshot) => total + value(snapshot), 0);
  const swaps = (result) =>
    sum(({ counts }) => sampleValue(counts.values(), "kairos_model_swaps_total", { result }));
  const opened = newest.map(({ gauges }) => sampleValue(gauges, "kairos_model_loaded_timestamp_seconds"));
  const items = newest.map(({ gauges }) => sampleValue(gauges, "kairos_index_items"));
  const inProgress = sum(({ gauges }) => sampleValue(gauges, "kairos_inference_in_progress"));
  byId("model-note").textContent =
    `${pluralize(refusals, "version")} refused in the last 15 minutes. ` +
    "Limit: bad above none (KairosSwapRefused); watch while processes serve different versions " +
    "(KairosVersionsDiffer).";
  const isBad = versions.length === 0 || refusals > 0;
  return showCard("model", isBad ? "bad" : versions.length > 1 ? "watch" : "ok", [
    [
      "serves",
      versions.length === 0
        ? "no model is open"
        : versions.map((version) => html`<span class="block">${code(version)}</span>`),
    ],
    ["items in the index", [...new Set(items)].map(formatCount).join(" or ")],
    ["opened", instant(new Date(Math.min(...opened) * SECOND).toISOString())],
    [
      "swaps since start",
      `${formatCount(swaps("activated"))} opened, ${formatCount(swaps("refused"))} refused`,
    ],
    ["in progress", `${pluralize(inProgress, "request")} at the model or waiting for it`],
  ]);
}

/**
 * The versions that processes serve, each once.
 *
 * @param {Snapshot[]} newest one per process
 * @returns {string[]}
 */
export function servedVersions(newest) {
  const versions = newest.flatMap(({ gauges }) =>
    gauges
      .filter(({ name, value }) => name === "kairos_model_info" && value === 1)
      .map(({ labels }) => labels.version),
  );
  return [...new Set(versions)];
}

/** The value of the sample with a name and these labels; 0 if there is none. */
function sampleValue(samples, name, labels = {}) {
  const required = Object.entries(labels);
  for (const sample of samples) {
    if (sample.name !== name) continue;
    if (required.every(([label, value]) => sample.labels[label] === value)) return sample.value;
  }
  return 0;
}

/**
 * Shows the newest run of the retraining job.
 *
 * @param {any} [run] as `GET /v1/training-runs` lists it; undefined for none
 * @returns {Status | null}
 */
export function showRun(run) {
  byId("run-note").textContent =
    run === undefined
      ? "Start one with: kairos retrain"
      : "Limit: bad after a run that failed or was abandoned (KairosRetrainingFailed).";
  if (run === undefined) return showCard("run", null, [["last run", "none yet"]]);
  const failed = (run.decision?.checks ?? []).filter(({ passed }) => !passed);
  return showCard("run", ["failed", "abandoned"].includes(run.result) ? "bad" : "ok", [
    ["last run", code(run.run_id)],
    ["began", instant(run.started_at)],
    ["finished", instant(run.finished_at)],
    ["result", html`<strong id="run-result">${run.result}</strong>`],
    ["reason", run.reason ?? "–"],
    ["gate", describeDecision(run.decision)],
    ["failed checks", failed.length === 0 ? "none" : checkList(failed)],
  ]);
}

function describeDecision(decision) {
  if (decision === null) return "not reached";
  return decision.promote ? "would promote the new model" : "would keep the previous model";
}

const checkList = (checks) =>
  html`<ul class="checks">${checks.map(
    ({ name, sentence }) => html`<li>${code(name)}: ${sentence}</li>`,
  )}</ul>`;

/**
 * Shows the newest change of the version that serves, or of the traffic.
 *
 * @param {any} [change] as `GET /v1/models/changes` lists it; undefined for none
 * @returns {Status | null}
 */
export function showChange(change) {
  if (change === undefined) return showCard("change", null, [["newest change", "none yet"]]);
  const age = Date.now() - Date.parse(change.at);
  // A change of traffic does not change the current version, so its age is not that of the version.
  const isOld = change.traffic === null && age > OLD;
  return showCard("change", isOld ? "watch" : "ok", [
    ["changed", `${instant(change.at)}, ${formatDuration(Math.max(0, age))} ago`],
    ["what", change.change],
    ["version", optionalCode(change.version)],
    ["before", optionalCode(change.previous_version)],
    ["by", change.actor],
    ["reason", change.reason ?? "–"],
  ]);
}

/**
 * Shows why the run or the change is not known.
 *
 * @param {"run" | "change"} id
 * @param {Error} error
 */
export const showUnknown = (id, error) => showCard(id, null, [["not known", error.message]]);

/**
 * Lists every operation with requests, the busiest first, unless the list has the focus.
 *
 * @param {import("./metrics.js").Rates} rates
 */
export function showOperations(rates) {
  const container = byId("operations");
  if (container.querySelector(":focus")) return;
  const rows = busiestOperations(rates).map(({ method, route, rate }) => {
    const isThis = (labels) => labels.method === method && labels.route === route;
    const statusShare = (digit) =>
      formatShare(rates.share(REQUESTS, ({ status }) => status.startsWith(digit), isThis));
    return [
      `${method} ${route}`,
      formatRate(rate),
      ...[0.5, 0.95, 0.99].map((quantile) =>
        formatSeconds(rates.quantile(quantile, REQUEST_SECONDS, isThis)),
      ),
      statusShare("4"),
      statusShare("5"),
    ];
  });
  const caption = "Operations, the busiest first";
  const columns = ["Operation", "Requests", "p50", "p95", "p99", "4xx", "5xx"];
  render(scrollRegion(table({ caption, columns, rows }), caption), container);
}

function busiestOperations(rates) {
  const operations = [];
  for (const method of rates.sumBy("method", REQUESTS, isClientRequest).keys()) {
    const isThis = (labels) => isClientRequest(labels) && labels.method === method;
    for (const [route, rate] of rates.sumBy("route", REQUESTS, isThis)) {
      if (rate > 0) operations.push({ method, route, rate });
    }
  }
  return operations.sort((one, other) => other.rate - one.rate);
}

// @ts-check
/** The cards above the panels (readiness, model, retraining, newest change), and the operations. */

import { nameResult } from "../models/words.js";
import { Problem } from "../shell/api.js";
import { DAY, formatCount, formatDuration, formatInstant, pluralize, SECOND } from "../shell/format.js";
import { byId, html, nothing, render } from "../shell/html.js";
import { describeFaults, PARTS } from "../shell/readiness.js";
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
/** How long the page waits for a response, in milliseconds: longer than the service for its database. */
export const PATIENCE = 10 * SECOND;
export const RETRY = "The page tries again with the next poll.";

/**
 * Shows a card: its status, what matters in one or two lines, and the facts.
 *
 * @template {Status | null} State
 * @param {string} id
 * @param {State} status
 * @param {{summary: any[], facts: Fact[]}} content `summary` has an entry for each line
 */
function showCard(id, status, { summary, facts }) {
  const badge = byId(`state-${id}`);
  const word = status === "forbidden" ? null : status;
  badge.textContent = word ?? "";
  badge.className = `state ${word ?? "none"}`;
  render(
    summary.map((line) => html`<p>${line}</p>`),
    byId(`${id}-summary`),
  );
  render(
    facts.map(([name, fact]) => html`<dt>${name}</dt><dd>${fact}</dd>`),
    byId(id),
  );
  return status;
}

const code = (text) => html`<code>${text}</code>`;
const optionalCode = (text) => (text === null ? "–" : code(text));
const instant = (rfc3339) => (rfc3339 === null ? "–" : `${formatInstant(Date.parse(rfc3339))} UTC`);
const ago = (at) => `${formatDuration(Math.max(0, Date.now() - at))} ago`;

/**
 * Requests `GET /health/ready`, which needs no key, and shows the response.
 *
 * @returns {Promise<Status>}
 */
export async function showReadiness() {
  const { readiness, failure } = await readReadiness();
  if (readiness === null) {
    const summary = [html`${code("health/ready")} failed: ${failure}`, RETRY];
    return showCard("ready", "bad", { summary, facts: [["service", failure]] });
  }
  const isReady = readiness.status === "ready";
  const faults = describeFaults(readiness);
  const status = !isReady ? "bad" : faults !== "" ? "watch" : "ok";
  showCard("ready", status, {
    summary: [
      isReady ? "The service answers requests." : "The service should get no requests.",
      faults || "All of its parts are in order.",
    ],
    facts: [
      ["service", isReady ? "ready" : "not ready"],
      ...PARTS.map((part) => /** @type {Fact} */ ([part, readiness[part]])),
    ],
  });
  return status;
}

/** The response of `GET /health/ready`, whatever its status code; or null, and what came instead. */
async function readReadiness() {
  const url = new URL("../health/ready", document.baseURI);
  let response;
  try {
    response = await fetch(url, {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    return { readiness: null, failure: "no response" };
  }
  const readiness = await response.json().catch(() => null);
  const isUsable = typeof readiness?.status === "string" && PARTS.every((part) => part in readiness);
  const failure = `status ${response.status}, without the state of its parts`;
  return isUsable ? { readiness, failure: "" } : { readiness: null, failure };
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
  const openings = newest.map(({ gauges }) => sampleValue(gauges, "kairos_model_loaded_timestamp_seconds"));
  const opened = Math.min(...openings) * SECOND;
  const items = newest.map(({ gauges }) => sampleValue(gauges, "kairos_index_items"));
  const itemCounts = [...new Set(items)].map(formatCount).join(" or ");
  const inProgress = sum(({ gauges }) => sampleValue(gauges, "kairos_inference_in_progress"));
  byId("model-note").textContent =
    `${pluralize(refusals, "version")} refused in the last 15 minutes. ` +
    "Limit: bad above none (KairosSwapRefused); watch while processes serve different versions " +
    "(KairosVersionsDiffer).";
  const isBad = versions.length === 0 || refusals > 0;
  const served = versions.map((version) => html`<span class="block">${code(version)}</span>`);
  return showCard("model", isBad ? "bad" : versions.length > 1 ? "watch" : "ok", {
    summary:
      versions.length === 0
        ? ["No model is open."]
        : [
            versions.length > 1 ? `${versions.length} different versions serve.` : served,
            refusals > 0
              ? `${pluralize(refusals, "version")} refused in the last 15 minutes.`
              : `${itemCounts} items, opened ${ago(opened)}`,
          ],
    facts: [
      ["serves", versions.length === 0 ? "no model is open" : served],
      ["items in the index", itemCounts],
      ["opened", versions.length === 0 ? "–" : instant(new Date(opened).toISOString())],
      [
        "swaps since start",
        `${formatCount(swaps("activated"))} opened, ${formatCount(swaps("refused"))} refused`,
      ],
      ["in progress", `${pluralize(inProgress, "request")} at the model or waiting for it`],
    ],
  });
}

/** Shows that the model is not known: there are no metrics. */
export function showNoModel() {
  showCard("model", null, { summary: ["Not known without the metrics."], facts: [["serves", "not known"]] });
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
  if (run === undefined) {
    return showCard("run", null, { summary: ["No run yet."], facts: [["last run", "none yet"]] });
  }
  const failed = (run.decision?.checks ?? []).filter(({ passed }) => !passed);
  const end = run.finished_at === null ? "began" : "finished";
  return showCard("run", ["failed", "abandoned"].includes(run.result) ? "bad" : "ok", {
    summary: [
      html`<strong>${nameResult(run.result)}</strong>, ${end} ${ago(Date.parse(run.finished_at ?? run.started_at))}`,
      run.reason ?? nothing,
    ],
    facts: [
      ["last run", code(run.run_id)],
      ["began", instant(run.started_at)],
      ["finished", instant(run.finished_at)],
      ["result", html`<strong id="run-result">${run.result}</strong>`],
      ["reason", run.reason ?? "–"],
      ["gate", describeDecision(run.decision)],
      ["failed checks", failed.length === 0 ? "none" : checkList(failed)],
    ],
  });
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
  if (change === undefined) {
    return showCard("change", null, { summary: ["No change yet."], facts: [["newest change", "none yet"]] });
  }
  const at = Date.parse(change.at);
  // A change of traffic does not change the current version, so its age is not that of the version.
  const isOld = change.traffic === null && Date.now() - at > OLD;
  return showCard("change", isOld ? "watch" : "ok", {
    summary: [`${change.change} by ${change.actor}, ${ago(at)}`, change.version === null ? nothing : code(change.version)],
    facts: [
      ["changed", `${instant(change.at)}, ${ago(at)}`],
      ["what", change.change],
      ["version", optionalCode(change.version)],
      ["before", optionalCode(change.previous_version)],
      ["by", change.actor],
      ["reason", change.reason ?? "–"],
    ],
  });
}

/**
 * Shows that the run or the change is not known, and why.
 *
 * @param {"run" | "change"} id
 * @param {string} path that was requested
 * @param {Error} error
 * @returns {Status}
 */
export function showUnknown(id, path, error) {
  const reason = describeFailure(error);
  const isRefused = isRefusalOfKey(error);
  return showCard(id, isRefused ? "forbidden" : "unknown", {
    summary: isRefused
      ? ["This needs a key that may read it.", reason]
      : [html`${code(path)} failed: ${reason}`, RETRY],
    facts: [["not known", reason]],
  });
}

/**
 * Whether a request was refused for its key: repeating it does not help, another key does.
 *
 * @param {any} error
 */
export const isRefusalOfKey = (error) => error instanceof Problem && [401, 403].includes(error.status);

/** The reason of a failure; a response that the page cannot read is one, too. */
export function describeFailure(error) {
  if (error instanceof Problem) return error.message;
  console.error(error);
  return "the response lacks what the page shows";
}

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

// @ts-check
/** The facts, recipe and files of one version. */

import { formatCount, formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { html } from "../shell/html.js";
import { table } from "../shell/tables.js";
import { findTrainingRun } from "./data.js";
import { rolesOf } from "./versions_card.js";

/**
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").ModelsState} ModelsState
 */

/**
 * The facts of a version, as terms and descriptions.
 *
 * @param {Description} description
 * @param {ModelsState} serving
 */
export function factList(description, { models, traffic, runs }) {
  const { manifest, version } = description;
  const model = models.find((one) => one.version === version);
  const { encoder } = manifest.recommender;
  const { counts } = manifest;
  const data =
    `${pluralize(counts.events, "event")} of ${pluralize(counts.users, "customer")}, ` +
    pluralize(counts.items, "item");
  const rows = [
    ["Role", rolesOf(model, traffic).join(", ") || "none"],
    ["Trained", `${formatInstant(Date.parse(manifest.created_at))} UTC`],
    ["Training data", data],
    ["Encoder", encoder.time_encoding ? `${encoder.kind}, ${encoder.time_encoding.kind} time` : encoder.kind],
    ["History length", `at most ${pluralize(manifest.max_history, "event")}`],
    ["Training", describeTraining(manifest.provenance)],
    ["Index recall", describeRecall(description, runs)],
    ["Latency", describeLatency(description, runs)],
    ["Clicks", describeClicks(description)],
  ];
  return rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`);
}

function describeTraining({ best_epoch: best, seconds, refitted_after_measuring: isRefitted }) {
  const parts = [];
  if (seconds !== undefined) parts.push(`${seconds} s`);
  if (best !== undefined && best !== null) parts.push(`best epoch ${best}`);
  if (isRefitted === true) parts.push("refitted on all events after the evaluation");
  return parts.join(", ") || "not recorded";
}

function describeRecall(description, runs) {
  const format = (share, where) => `${formatPercent(share)} of the exact ten best items found, ${where}`;
  return describeMeasurement(description, runs, { part: "index_recall", check: "index_recall", format });
}

function describeLatency(description, runs) {
  const format = (seconds, where) => `95 of 100 recommendations within ${(seconds * 1000).toFixed(1)} ms, ${where}`;
  return describeMeasurement(description, runs, { part: "p95_seconds", check: "latency", format });
}

/** A value of the bundle, or of the gate of the run that trained it, or the reason why there is none. */
function describeMeasurement({ version, missing, ...description }, runs, { part, check, format }) {
  if (description[part] !== null) return format(description[part], "measured where it was trained");
  if (runs === null) return "not known: the retraining runs could not be loaded";
  const checks = findTrainingRun(runs, version)?.decision?.checks ?? [];
  const value = checks.find((one) => one.name === check)?.value ?? null;
  if (value !== null) return format(value, "measured by the gate of its retraining run");
  return `unknown: ${missing.find((one) => one.part === part)?.why ?? "the service gives no reason"}`;
}

/** @param {Description} description */
function describeClicks({ clicks, missing }) {
  if (clicks === null) return missing.find((one) => one.part === "clicks")?.why ?? "unknown";
  const { shown, clicked, rate } = clicks;
  if (rate === null) return "no recommendations recorded";
  return `${formatCount(clicked)} of ${pluralize(shown, "recommendation")} clicked, ${formatPercent(rate)}`;
}

/**
 * The recipe of a version as JSON; without one, the configuration of its recommender.
 *
 * @param {Description} description
 */
export const recipe = ({ manifest }) => JSON.stringify(manifest.provenance.recipe ?? manifest.recommender, null, 2);

/**
 * The files of a bundle with their checksums, as a table.
 *
 * @param {Description} description
 */
export const filesTable = ({ manifest }) =>
  table({
    caption: "Files of the bundle",
    columns: ["File", "SHA-256"],
    rows: Object.entries(manifest.files).map(([file, sum]) => [file, html`<code>${sum}</code>`]),
  });

/** What a version's manifest tells beside its metrics. */

import { formatCount, formatInstant, formatPercent, pluralize } from "../shell/format.js";
import { byId, element, render } from "../shell/html.js";
import { table } from "../shell/tables.js";
import { runOf } from "./metrics.js";
import { rolesOf } from "./roles.js";

/** Show the facts, the recipe and the files of a description. */
export function showFacts(description, { models, traffic, runs }) {
  const { manifest, version } = description;
  const model = models.find((one) => one.version === version);
  const { encoder } = manifest.recommender;
  const facts = [
    ["Role", rolesOf(model, traffic).join(", ") || "none"],
    ["Trained", `${formatInstant(Date.parse(manifest.created_at))} UTC`],
    ["Learned from", learnedFrom(manifest.counts)],
    ["Encoder", encoder.time_encoding ? `${encoder.kind}, ${encoder.time_encoding.kind} time` : encoder.kind],
    ["Reads", `the last ${pluralize(manifest.max_history, "event")} of a history`],
    ["Training", training(manifest.provenance)],
    ["Index recall", indexRecall(description, runs)],
    ["Latency", latency(description, runs)],
    ["Clicks", clicks(description)],
  ];
  byId("facts").replaceChildren(
    ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
  byId("recipe").textContent = JSON.stringify(manifest.provenance.recipe ?? manifest.recommender, null, 2);
  render(
    table({
      caption: "Files of the bundle",
      columns: ["File", "SHA-256"],
      rows: Object.entries(manifest.files).map(([file, sum]) => [file, element("code", {}, sum)]),
    }),
    byId("files"),
  );
}

const learnedFrom = ({ events, users, items }) =>
  `${pluralize(events, "event")} of ${pluralize(users, "user")}, ${pluralize(items, "item")}`;

function training({ best_epoch: best, seconds, refitted_after_measuring: isRefitted }) {
  const parts = [];
  if (seconds !== undefined) parts.push(`${seconds} s`);
  if (best !== undefined && best !== null) parts.push(`best epoch ${best}`);
  if (isRefitted === true) parts.push("fitted again on all events after it was measured");
  return parts.join(", ") || "not told";
}

function indexRecall(description, runs) {
  const of = (share, where) => `${formatPercent(share)} of the exact ten best items found, ${where}`;
  return measured(description, runs, "index_recall", "index_recall", of);
}

function latency(description, runs) {
  const of = (seconds, where) => `95 of 100 answers within ${(seconds * 1000).toFixed(1)} ms, ${where}`;
  return measured(description, runs, "p95_seconds", "latency", of);
}

/** What the bundle tells, else what the gate of the run that trained it measured, else why not. */
function measured({ version, missing, ...description }, runs, part, check, say) {
  if (description[part] !== null) return say(description[part], "measured where it was trained");
  const checks = runOf(runs, version)?.decision?.checks ?? [];
  const value = checks.find((one) => one.name === check)?.value ?? null;
  if (value !== null) return say(value, "measured by the gate of its retraining run");
  return `not told: ${missing.find((one) => one.part === part)?.why ?? "the service gives no reason"}`;
}

function clicks({ clicks: told, missing }) {
  if (told === null) return missing.find((one) => one.part === "clicks")?.why ?? "not told";
  if (told.shown === 0) return "no answers recorded";
  return `${formatCount(told.clicked)} of ${pluralize(told.shown, "answer")} clicked, ${formatPercent(told.rate)}`;
}

/** What is said in words: readiness, the model that answers, retraining, the newest change. */

import {
  DAY,
  formatCount,
  formatDuration,
  formatInstant,
  pluralize,
  SECOND,
} from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { showState } from "./panel.js";

const OLD = 2 * DAY;

/** A list of names and what is said of each; texts or nodes. */
function tell(id, facts) {
  byId(id).replaceChildren(
    ...facts.flatMap(([name, said]) => [element("dt", {}, name), element("dd", {}, said)]),
  );
}

const code = (text) => element("code", {}, text);
const instant = (rfc3339) => (rfc3339 === null ? "–" : `${formatInstant(Date.parse(rfc3339))} UTC`);

/** What `GET /health/ready` says; null where nothing answered. Answers the judgement. */
export function showReadiness(said) {
  const isReady = said?.status === "ready";
  showState(byId("state-ready"), isReady ? "ok" : "bad");
  const parts = ["model", "database", "process"];
  tell(
    "ready",
    said === null
      ? [["service", "no process answered"]]
      : [["service", isReady ? "ready" : "not ready"], ...parts.map((part) => [part, said[part]])],
  );
  return isReady ? "ok" : "bad";
}

/** Which versions the processes serve, by their newest answers; `refusals` within the time kept. */
export function showModel(newest, refusals) {
  const versions = [...served(newest)];
  const refused = refusals > 0;
  const state = versions.length === 0 || refused ? "bad" : versions.length > 1 ? "watch" : "ok";
  showState(byId("state-model"), state);
  const swaps = (result) =>
    total(newest, ({ counts }) => valueOf(counts.values(), "kairos_model_swaps_total", { result }));
  const loaded = newest.map((one) => valueOf(one.gauges, "kairos_model_loaded_timestamp_seconds"));
  const items = newest.map((one) => valueOf(one.gauges, "kairos_index_items"));
  const waiting = total(newest, ({ gauges }) => valueOf(gauges, "kairos_inference_in_progress"));
  tell("model", [
    ["serves", versions.length === 0 ? "no model is open" : listed(versions)],
    ["items in the index", [...new Set(items)].map(formatCount).join(" or ")],
    ["opened", instant(new Date(Math.min(...loaded) * SECOND).toISOString())],
    ["swaps since start", `${formatCount(swaps("activated"))} opened, ${formatCount(swaps("refused"))} refused`],
    ["asked just now", `${pluralize(waiting, "request")} at the model or waiting for it`],
  ]);
  byId("model-note").textContent =
    `${pluralize(refusals, "version")} refused in the last 15 minutes. ` +
    "Limit: bad above none (KairosSwapRefused); watch while processes serve different ones " +
    "(KairosVersionsDiffer).";
  return state;
}

/** The versions that processes serve. */
export function served(newest) {
  const names = newest.flatMap(({ gauges }) =>
    gauges
      .filter(({ name, value }) => name === "kairos_model_info" && value === 1)
      .map(({ labels }) => labels.version),
  );
  return new Set(names);
}

const listed = (versions) =>
  element("span", {}, ...versions.map((version) => element("span", { class: "block" }, code(version))));

const total = (newest, value) => newest.reduce((sum, one) => sum + value(one), 0);

/** The value of the sample with a name and these labels; 0 where it never came up. */
function valueOf(samples, name, labels = {}) {
  const wanted = Object.entries(labels);
  for (const sample of samples) {
    if (sample.name !== name) continue;
    if (wanted.every(([label, value]) => sample.labels[label] === value)) return sample.value;
  }
  return 0;
}

/** The newest run of the retraining job, or undefined. */
export function showRun(run) {
  const note = "Limit: bad after a run that failed or was abandoned (KairosRetrainingFailed).";
  byId("run-note").textContent = run === undefined ? "Runs begin with: kairos retrain" : note;
  if (run === undefined) {
    showState(byId("state-run"), null);
    tell("run", [["last run", "none yet"]]);
    return null;
  }
  const isBad = ["failed", "abandoned"].includes(run.result);
  showState(byId("state-run"), isBad ? "bad" : "ok");
  const failed = (run.decision?.checks ?? []).filter(({ passed }) => !passed);
  tell("run", [
    ["last run", code(run.run_id)],
    ["began", instant(run.started_at)],
    ["finished", instant(run.finished_at)],
    ["result", element("strong", { id: "run-result" }, run.result)],
    ["reason", run.reason ?? "–"],
    ["gate", gate(run.decision)],
    ["failed checks", failed.length === 0 ? "none" : checks(failed)],
  ]);
  return isBad ? "bad" : "ok";
}

function gate(decision) {
  if (decision === null) return "was not asked";
  return decision.promote ? "would promote the new model" : "would keep the model before";
}

const checks = (failed) =>
  element(
    "ul",
    { class: "checks" },
    ...failed.map(({ name, sentence }) => element("li", {}, code(name), `: ${sentence}`)),
  );

/** The newest change of what is served, or undefined. */
export function showChange(change) {
  if (change === undefined) {
    showState(byId("state-change"), null);
    tell("change", [["newest change", "none yet"]]);
    return null;
  }
  const age = Date.now() - Date.parse(change.at);
  // A change of traffic leaves the version; how long it has served is not told by this one.
  const isOld = change.traffic === null && age > OLD;
  showState(byId("state-change"), isOld ? "watch" : "ok");
  tell("change", [
    ["changed", `${instant(change.at)}, ${formatDuration(Math.max(0, age))} ago`],
    ["what", change.change],
    ["version", change.version === null ? "–" : code(change.version)],
    ["before", change.previous_version === null ? "–" : code(change.previous_version)],
    ["by", change.actor],
    ["reason", change.reason ?? "–"],
  ]);
  return isOld ? "watch" : "ok";
}

/** Why one of these could not be asked for. */
export function showMissing(id, error) {
  showState(byId(`state-${id}`), null);
  tell(id, [["not known", error.message]]);
}

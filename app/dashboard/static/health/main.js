// @ts-check
/** The Operations page: polls the service's metrics while the page is visible. */

import { call, Problem } from "../shell/api.js";
import { formatDuration, formatInstant, MINUTE, SECOND } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import { heldRole, onKeyChange } from "../shell/key.js";
import { announce, showBanner, showBusy, showVersion } from "../shell/page.js";
import { integer, Permalink } from "../shell/permalink.js";
import {
  describeFailure,
  isRefusalOfKey,
  PATIENCE,
  RETRY,
  servedVersions,
  showChange,
  showModel,
  showNoModel,
  showOperations,
  showReadiness,
  showRun,
  showUnknown,
} from "./cards.js";
import { MetricsHistory } from "./metrics.js";
import { Panel } from "./panel.js";
import { PANELS, severity } from "./panels.js";
import { Poller } from "./poller.js";
import { Verdict } from "./verdict.js";

/** @typedef {import("./panels.js").Status} Status */

/** Seconds between polls that the page offers. */
const INTERVALS = [1, 2, 5, 10, 30];
/** The panels that are always shown; the others are under "All rates". */
const FIGURES = ["requests", "latency", "failures"];
/** Names of the cards, as their headings, and their ids. */
const CARDS = [
  ["Ready", "ready"],
  ["Model", "model"],
  ["Retraining", "run"],
  ["Newest change", "change"],
];
/** The cards that have an endpoint of their own, beside the metrics. */
const RECORDS = [
  {
    name: "Retraining",
    id: "run",
    path: "v1/training-runs",
    show: ({ runs }) => showRun(runs[0]),
  },
  {
    name: "Newest change",
    id: "change",
    path: "v1/models/changes",
    show: ({ changes }) => showChange(changes[0]),
  },
];
const LINK = new Permalink({ interval: integer(1, 60, 5) });

let state = LINK.read();
const metrics = new MetricsHistory();
const panels = PANELS.map((spec) => new Panel(spec));
/** Why the last run and change were requested, and when: see `refreshCards`. */
let refreshed = { trigger: "", at: -Infinity };
/** @type {Map<string, Status | null>} the last known status of each card and panel */
const statuses = new Map();
/** @type {Map<string, Status>} likewise, as it was announced last */
const announced = new Map();
const verdict = new Verdict({
  row: byId("verdict-row"),
  line: byId("verdict"),
  forward: byId("forward"),
});
const isFigure = ({ id }) => FIGURES.includes(id);

const poller = new Poller({ poll, onPauseChange: showPauseState, interval: state.interval });

/** Requests readiness, metrics and, if due, the run and the change; shows each as it arrives. */
async function poll() {
  const readiness = showReadiness().then((status) => statuses.set("Ready", status));
  const error = await pollRates();
  // The other requests would prompt for a key again, or wait for a service that is gone.
  if (error === null || !(isRefusalOfKey(error) || isUnreachable(error))) await refreshCards(Date.now());
  await readiness;
  showVerdict();
  announceChanges();
  showBusy(false);
}

/**
 * Calls the API. A request without a response in time has failed: old rates are no news. The time
 * that the user takes to enter a key does not count.
 *
 * @param {string} path
 * @param {Record<string, any>} [query]
 */
async function callInTime(path, query) {
  const controller = new AbortController();
  const giveUp = () => {
    if (document.querySelector("dialog[open]") === null) controller.abort(new Problem("no response"));
  };
  const timer = setInterval(giveUp, PATIENCE);
  try {
    return await call(path, { query, signal: controller.signal });
  } finally {
    clearInterval(timer);
  }
}

const isUnreachable = (error) => error instanceof Problem && error.status === 0;

/**
 * Requests the metrics and shows them, or why there are none.
 *
 * @returns {Promise<Error | null>} the failure
 */
async function pollRates() {
  try {
    const response = await callInTime("v1/metrics");
    const receivedAt = Date.now();
    metrics.add(response, { receivedAt, interval: state.interval });
    showHistory(receivedAt);
    statuses.set("Rates", "ok");
    showFailure(null);
    return null;
  } catch (error) {
    // Another poll would prompt for a key again.
    if (isRefusalOfKey(error)) poller.pause();
    statuses.set("Rates", isRefusalOfKey(error) ? "forbidden" : "unknown");
    showFailure(error);
    return error;
  }
}

/**
 * Shows all panels and the Model card.
 *
 * @param {number} receivedAt milliseconds
 */
function showHistory(receivedAt) {
  const { rates, values, points, newest, refusals } = metrics;
  const { isSinceStart } = rates;
  const span = isSinceStart
    ? "since start"
    : `in the last ${formatDuration(Math.max(SECOND, rates.seconds * SECOND))}`;
  showVersion(servedVersions(newest).join(", ") || "none");
  const processes = newest.length === 1 ? "1 process" : `${newest.length} processes`;
  const of = rates.processes < newest.length ? `of ${rates.processes} of them ` : "";
  byId("polled").textContent =
    `${processes} polled, last at ${formatInstant(receivedAt)} UTC; rates ${of}${span}.`;
  for (const panel of panels) {
    statuses.set(panel.heading, panel.show({ values: values[panel.id], span, isSinceStart, points }));
  }
  showOperations(rates);
  statuses.set("Model", showModel(newest, refusals));
}

/**
 * Shows why the metrics could not be read, and fades what was computed from them; null: they were.
 *
 * @param {Error | null} error
 */
function showFailure(error) {
  const problem = byId("problem");
  byId("view").classList.toggle("outdated", error !== null);
  problem.hidden = error === null;
  if (error === null) return;
  const isRefused = isRefusalOfKey(error);
  problem.className = isRefused ? "card" : "problem";
  const isFirst = metrics.newest.length === 0;
  if (isFirst) showNoModel();
  const since = isFirst ? "" : "The rates and the Model card are as of the time above.";
  render(
    html`<code>v1/metrics</code> ${isRefused ? "needs a key that may read it" : "failed"}: ${describeFailure(error)}.
      ${since} ${isRefused ? "Resume asks for one." : RETRY}`,
    problem,
  );
}

/**
 * Requests the newest run and change, once a minute and whenever the metrics count another run or
 * show another version; those that failed with every poll.
 *
 * @param {number} now milliseconds
 */
async function refreshCards(now) {
  const trigger = JSON.stringify(
    metrics.newest.map(({ counts, gauges }) =>
      [...counts.values(), ...gauges].filter(({ name }) =>
        ["kairos_training_runs_total", "kairos_model_info"].includes(name),
      ),
    ),
  );
  const isDue = trigger !== refreshed.trigger || now - refreshed.at >= MINUTE;
  if (isDue) refreshed = { trigger, at: now };
  await Promise.all(
    RECORDS.filter(({ name }) => {
      const status = statuses.get(name);
      return status === "unknown" || (isDue && status !== "forbidden");
    }).map(showRecord),
  );
}

/** Requests and shows the newest run, or the newest change. */
async function showRecord({ name, id, path, show }) {
  try {
    statuses.set(name, show(await callInTime(path, { limit: 1 })));
  } catch (error) {
    statuses.set(name, showUnknown(id, path, error));
    // The key expired or was revoked meanwhile: the next poll would prompt for one again.
    if (error instanceof Problem && error.status === 401) poller.pause();
  }
}

function showVerdict() {
  verdict.show(statuses, { isEarly: metrics.rates.isSinceStart, isPaused: poller.isPaused });
}

/** Announces each status that changed; when it is first known, only if it is not "ok". */
function announceChanges() {
  const changes = [];
  for (const [name, status] of statuses) {
    if (status === null || status === announced.get(name)) continue;
    const isFirst = !announced.has(name);
    announced.set(name, status);
    if (!isFirst || severity(status) > severity("ok")) changes.push(`${name}: ${status}`);
  }
  if (changes.length > 0) announce(changes.join(", "));
}

function showPauseState() {
  byId("pause").textContent = poller.isPaused ? "Resume" : "Pause";
  byId("paused").hidden = !poller.isPaused;
  if (statuses.size > 0) showVerdict();
}

/** Requests again what was refused, and polls. */
function resume() {
  for (const { name } of RECORDS) if (statuses.get(name) === "forbidden") statuses.set(name, "unknown");
  poller.resume();
}

function showInterval() {
  const select = byId("interval");
  const choices = [...new Set([...INTERVALS, state.interval])].sort((one, other) => one - other);
  render(
    choices.map((seconds) => html`<option value=${seconds}>${seconds} s</option>`),
    select,
  );
  select.value = state.interval;
}

function start() {
  showBanner();
  showInterval();
  byId("figures").append(...panels.filter(isFigure).map(({ node }) => node));
  byId("panels").prepend(...panels.filter((panel) => !isFigure(panel)).map(({ node }) => node));
  verdict.add("Rates", byId("problem"), { moves: false });
  for (const [name, id] of CARDS) verdict.add(name, byId(`card-${id}`));
  for (const { heading, node } of panels) verdict.add(heading, node);
  byId("interval").addEventListener("change", ({ target }) => {
    state = { interval: Number(target.value) };
    LINK.save(state);
    poller.interval = state.interval;
  });
  byId("pause").addEventListener("click", () => (poller.isPaused ? resume() : poller.pause()));
  onKeyChange(() => {
    if (heldRole() !== null) resume();
  });
  window.addEventListener("popstate", () => {
    state = LINK.read();
    showInterval();
    poller.interval = state.interval;
  });
  poller.resume();
}

start();

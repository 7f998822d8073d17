// @ts-check
/** The Health page: polls the service's metrics while the page is visible. */

import { call, Problem } from "../shell/api.js";
import { formatDuration, formatInstant, MINUTE, SECOND } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import { heldRole, onKeyChange } from "../shell/key.js";
import {
  announce,
  clearProblem,
  showBanner,
  showBusy,
  showProblem,
  showVersion,
} from "../shell/page.js";
import { integer, Permalink } from "../shell/permalink.js";
import {
  servedVersions,
  showChange,
  showModel,
  showOperations,
  showReadiness,
  showRun,
  showUnknown,
} from "./cards.js";
import { MetricsHistory } from "./metrics.js";
import { Panel } from "./panel.js";
import { PANELS } from "./panels.js";

/** @typedef {import("./panels.js").Status} Status */

/** Seconds between polls that the page offers. */
const INTERVALS = [1, 2, 5, 10, 30];
const LINK = new Permalink({ interval: integer(1, 60, 5) });

let state = LINK.read();
const metrics = new MetricsHistory();
const panels = PANELS.map((spec) => new Panel(spec));
/** Why the last run and change were requested, and when: see `refreshCards`. */
let refreshed = { trigger: "", at: -Infinity };
/** @type {Map<string, Status>} the status of each card and panel that was announced last */
const announced = new Map();

/** Calls `poll` repeatedly, one call at a time, while the page is visible and not paused. */
class Poller {
  #poll;
  #onPauseChange;
  #interval;
  #timer = 0;
  #isPolling = false;
  #isPaused = false;

  /**
   * @param {object} options
   * @param {() => Promise<void>} options.poll
   * @param {() => void} options.onPauseChange
   * @param {number} options.interval seconds from one poll to the next
   */
  constructor({ poll, onPauseChange, interval }) {
    this.#poll = poll;
    this.#onPauseChange = onPauseChange;
    this.#interval = interval;
    document.addEventListener("visibilitychange", () => this.#run());
  }

  get isPaused() {
    return this.#isPaused;
  }

  /** Sets the interval in seconds, and polls at once. */
  set interval(seconds) {
    this.#interval = seconds;
    this.#run();
  }

  pause() {
    this.#isPaused = true;
    clearTimeout(this.#timer);
    this.#onPauseChange();
  }

  resume() {
    this.#isPaused = false;
    this.#onPauseChange();
    this.#run();
  }

  async #run() {
    clearTimeout(this.#timer);
    if (this.#isPolling || !this.#isActive) return;
    this.#isPolling = true;
    const began = performance.now();
    await this.#poll();
    this.#isPolling = false;
    if (!this.#isActive) return;
    const rest = this.#interval * SECOND - (performance.now() - began);
    this.#timer = window.setTimeout(() => this.#run(), Math.max(0, rest));
  }

  get #isActive() {
    return !this.#isPaused && document.visibilityState === "visible";
  }
}

const poller = new Poller({ poll, onPauseChange: showPauseState, interval: state.interval });

/** Requests readiness, metrics and, if due, the run and the change; shows each as it arrives. */
async function poll() {
  /** @type {Map<string, Status | null>} */
  const statuses = new Map();
  const readiness = showReadiness().then((status) => statuses.set("Ready", status));
  try {
    const response = await call("v1/metrics");
    const receivedAt = Date.now();
    metrics.add(response, { receivedAt, interval: state.interval });
    for (const [name, status] of showHistory(receivedAt)) statuses.set(name, status);
    await refreshCards(receivedAt);
    clearProblem();
  } catch (error) {
    // Another poll would prompt for a key again.
    if (error instanceof Problem && [401, 403].includes(error.status)) poller.pause();
    showProblem(error);
  }
  await readiness;
  announceChanges(statuses);
  showBusy(false);
}

/**
 * Shows all panels and the Model card; yields the name and status of each.
 *
 * @param {number} receivedAt milliseconds
 * @returns {Generator<[string, Status | null]>}
 */
function* showHistory(receivedAt) {
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
  for (const [index, { id }] of PANELS.entries()) {
    const panel = panels[index];
    yield [panel.heading, panel.show({ values: values[id], span, isSinceStart, points })];
  }
  showOperations(rates);
  yield ["Model", showModel(newest, refusals)];
}

/**
 * Requests the newest run and change, once a minute and whenever the metrics count another run or
 * show another version.
 *
 * @param {number} now milliseconds
 * @throws {Problem} if a request was refused with 401
 */
async function refreshCards(now) {
  const trigger = JSON.stringify(
    metrics.newest.map(({ counts, gauges }) =>
      [...counts.values(), ...gauges].filter(({ name }) =>
        ["kairos_training_runs_total", "kairos_model_info"].includes(name),
      ),
    ),
  );
  if (trigger === refreshed.trigger && now - refreshed.at < MINUTE) return;
  refreshed = { trigger, at: now };
  /** @param {"run" | "change"} id */
  const showFailure = (id) => (error) => {
    // Request again with the next poll.
    refreshed.at = -Infinity;
    showUnknown(id, error);
    // The key expired or was revoked meanwhile: the next poll would prompt for one again.
    if (error instanceof Problem && error.status === 401) throw error;
  };
  const query = { limit: 1 };
  await Promise.all([
    call("v1/training-runs", { query }).then(({ runs }) => showRun(runs[0]), showFailure("run")),
    call("v1/models/changes", { query }).then(
      ({ changes }) => showChange(changes[0]),
      showFailure("change"),
    ),
  ]);
}

/**
 * Announces each status that changed; at first, those that are not "ok".
 *
 * @param {Map<string, Status | null>} statuses
 */
function announceChanges(statuses) {
  const isFirst = announced.size === 0;
  const changes = [];
  for (const [name, status] of statuses) {
    if (status === null || status === announced.get(name)) continue;
    announced.set(name, status);
    if (!isFirst || status !== "ok") changes.push(`${name}: ${status}`);
  }
  if (changes.length > 0) announce(changes.join(", "));
}

function showPauseState() {
  byId("pause").textContent = poller.isPaused ? "Resume" : "Pause";
  byId("paused").hidden = !poller.isPaused;
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
  byId("panels").prepend(...panels.map(({ node }) => node));
  byId("interval").addEventListener("change", ({ target }) => {
    state = { interval: Number(target.value) };
    LINK.save(state);
    poller.interval = state.interval;
  });
  byId("pause").addEventListener("click", () => (poller.isPaused ? poller.resume() : poller.pause()));
  onKeyChange(() => {
    if (heldRole() !== null) poller.resume();
  });
  window.addEventListener("popstate", () => {
    state = LINK.read();
    showInterval();
    poller.interval = state.interval;
  });
  poller.resume();
}

start();

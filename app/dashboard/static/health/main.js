/** The page: asks the service how it is doing, as long as somebody looks. */

import { call, Problem } from "../shell/api.js";
import { formatDuration, formatInstant, MINUTE, SECOND } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
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
import { served, showChange, showMissing, showModel, showReadiness, showRun } from "./facts.js";
import { showOperations } from "./operations.js";
import { Panel } from "./panel.js";
import { PANELS } from "./panels.js";
import { Poller } from "./poller.js";
import { askReadiness } from "./readiness.js";
import { Record } from "./record.js";

const INTERVALS = [1, 2, 5, 10, 30];
const LINK = new Permalink({ interval: integer(1, 60, 5) });

let state = LINK.read();
const record = new Record();
const panels = PANELS.map((about) => [about.id, new Panel(about)]);
const poller = new Poller({ poll, tell: showPolling, interval: state.interval });
/** What was asked for last beside the metrics, and when: it changes with a run or by hand. */
let slower = { told: null, at: -Infinity };
let judgements = new Map();

/** Ask for everything once, and show each part as soon as it is known. */
async function poll() {
  const judged = new Map();
  const readiness = askReadiness().then((said) => judged.set("Ready", showReadiness(said)));
  try {
    const answer = await call("v1/metrics");
    const heardAt = Date.now();
    record.take(answer, { heardAt, interval: state.interval });
    for (const [name, judgement] of showRecord(heardAt)) judged.set(name, judgement);
    await askSlower(heardAt);
    clearProblem();
  } catch (error) {
    // Asking again would ask the reader for a key again.
    if (error instanceof Problem && [401, 403].includes(error.status)) poller.pause();
    showProblem(error);
  }
  await readiness;
  tellChanges(judged);
  showBusy(false);
}

function* showRecord(heardAt) {
  const { rates, values, points, newest, refusals } = record;
  const span = rates.isSinceStart
    ? "since start"
    : `in the last ${formatDuration(Math.max(SECOND, rates.seconds * SECOND))}`;
  showVersion([...served(newest)].join(", ") || "none");
  const processes = newest.length === 1 ? "1 process" : `${newest.length} processes`;
  const of = rates.processes < newest.length ? `of ${rates.processes} of them ` : "";
  byId("heard").textContent =
    `${processes} heard, last at ${formatInstant(heardAt)} UTC; figures ${of}${span}.`;
  const { isSinceStart } = rates;
  for (const [id, panel] of panels) {
    yield [panel.heading, panel.show({ values: values[id], span, isSinceStart, points })];
  }
  showOperations(rates);
  yield ["Model", showModel(newest, refusals)];
}

/** Runs and changes, once a minute and whenever the metrics tell of another run or version. */
async function askSlower(heardAt) {
  const told = JSON.stringify(
    record.newest.map(({ counts, gauges }) =>
      [...counts.values(), ...gauges].filter(({ name }) =>
        ["kairos_training_runs_total", "kairos_model_info"].includes(name),
      ),
    ),
  );
  if (told === slower.told && heardAt - slower.at < MINUTE) return;
  slower = { told, at: heardAt };
  const newest = (path, show, id) =>
    call(path, { query: { limit: 1 } }).then(show, missing(id));
  await Promise.all([
    newest("v1/training-runs", ({ runs: [run] }) => showRun(run), "run"),
    newest("v1/models/changes", ({ changes: [change] }) => showChange(change), "change"),
  ]);
}

/** To be asked for again with the next poll. */
const missing = (id) => (error) => {
  slower.told = null;
  showMissing(id, error);
};

/** Say what became better or worse, once. */
function tellChanges(judged) {
  const told = [...judged].filter(([name, state]) => state !== null && state !== judgements.get(name));
  const isFirst = judgements.size === 0;
  for (const [name, state] of told) judgements.set(name, state);
  const worth = isFirst ? told.filter(([, state]) => state !== "ok") : told;
  if (worth.length > 0) announce(worth.map(([name, state]) => `${name}: ${state}`).join(", "));
}

function showPolling() {
  byId("pause").textContent = poller.isPaused ? "Go on" : "Pause";
  byId("paused").hidden = !poller.isPaused;
}

function showInterval() {
  const choices = [...new Set([...INTERVALS, state.interval])].sort((one, other) => one - other);
  byId("interval").replaceChildren(
    ...choices.map((seconds) => element("option", { value: String(seconds) }, `${seconds} s`)),
  );
  byId("interval").value = state.interval;
}

function start() {
  showBanner();
  showInterval();
  byId("panels").prepend(...panels.map(([, panel]) => panel.node));
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

// @ts-check
/** The banner's line about a running training, and its notice that another model serves. */

import { listModels } from "./api.js";
import { byId, html, nothing, render } from "./html.js";
import { authorizationHeaders, heldKey, onKeyChange } from "./key.js";

const SECONDS_WHILE_RUNNING = 3;
const SECONDS_WHILE_IDLE = 60;
const SECONDS_AFTER_LOAD = 1.5;
const LONGEST_BACK_OFF = 600;
const MOST_CHECKS = 20;
const RUNS = new URL("../v1/training-runs?limit=1", document.baseURI);

/** @type {Record<string, string>} */
const PHASES = {
  read: "reading the events",
  fit: "preparing",
  evaluate: "evaluating the model",
  write: "writing the model",
  gate: "comparing with the serving model",
  publish: "publishing the model",
  activate: "activating the model",
  prune: "removing old models",
};

let idleSeconds = SECONDS_WHILE_IDLE;
/** The run that this page has seen running. @type {string | null} */
let watchedRun = null;
/** Whether the version that serves only counts events; null if that is not known. @type {boolean | null} */
let isCounting = null;
/** @type {any} */
let timer = null;

/**
 * Begins to ask for the newest run: often while one is running, seldom otherwise, never without a
 * key, since the browser would report each refusal.
 *
 * When the model of a run that this page saw begins to serve, `kairos:model-changed` is dispatched
 * on the document, with the version in `detail`. A page that shows the new model by itself calls
 * `preventDefault()`; otherwise the notice has a button that loads the page again.
 */
export function followTraining() {
  onKeyChange(() => check());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) check();
  });
  // What the page itself shows comes first.
  timer = setTimeout(check, 1000 * SECONDS_AFTER_LOAD);
}

async function check() {
  clearTimeout(timer);
  if (heldKey() === null || document.hidden) return;
  timer = setTimeout(check, 1000 * (await showNewestRun()));
}

/** @returns {Promise<number>} seconds until the next request */
async function showNewestRun() {
  const run = await readNewestRun();
  if (run === undefined) {
    idleSeconds = Math.min(idleSeconds * 2, LONGEST_BACK_OFF);
    return idleSeconds;
  }
  idleSeconds = SECONDS_WHILE_IDLE;
  if (run?.progress) {
    // Once another version serves, counts do not come back during the run.
    if (watchedRun !== run.run_id || isCounting !== false) isCounting = await servesCounts();
    watchedRun = run.run_id;
    show(html`Training: ${describe(run.progress)}`);
    return SECONDS_WHILE_RUNNING;
  }
  if (run === null || run.run_id !== watchedRun) return idleSeconds;
  watchedRun = null;
  if (run.result === "promoted" && (await waitUntilServing(run.candidate))) showChange(run.candidate);
  else show(nothing);
  return idleSeconds;
}

/** @returns {Promise<any>} null if there is none; undefined if it could not be read */
async function readNewestRun() {
  try {
    const response = await fetch(RUNS, {
      headers: { Accept: "application/json", ...authorizationHeaders() },
    });
    return response.ok ? ((await response.json()).runs[0] ?? null) : undefined;
  } catch {
    return undefined;
  }
}

/** @returns {Promise<boolean | null>} whether the version that serves only counts events */
async function servesCounts() {
  try {
    return (await listModels()).some((model) => model.is_serving && model.encoder === "counting");
  } catch {
    return null;
  }
}

/** @returns {Promise<boolean>} whether the version serves: processes follow the store's pointer */
async function waitUntilServing(version) {
  for (let checks = 0; checks < MOST_CHECKS; checks += 1) {
    try {
      if ((await listModels()).some((model) => model.is_serving && model.version === version)) return true;
    } catch {
      return false;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  return false;
}

/** @param {string} version */
function showChange(version) {
  const change = new CustomEvent("kairos:model-changed", { detail: { version }, cancelable: true });
  const isShown = !document.dispatchEvent(change);
  byId("training").setAttribute("role", "status");
  const button = html`<button type="button" @click=${() => location.reload()}>Show it</button>`;
  show(html`Model <code>${version}</code> now serves ${isShown ? nothing : button}`);
}

/** Such as: 40 %, about 3 min left. A run fits up to three times, so its epochs begin anew. */
function describe({ phase, epoch, share, seconds_left: left }) {
  const done = epoch === null ? (PHASES[phase] ?? phase) : `${Math.floor(share * 100)} %`;
  const rest = epoch === null || left === null ? "" : `, ${formatLeft(left)}`;
  return `${done}${rest}${isCounting ? "; until then events are only counted" : ""}`;
}

/** @param {number} seconds */
function formatLeft(seconds) {
  if (seconds < 60) return "less than a minute left";
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `about ${minutes} min left` : `about ${Math.round(minutes / 60)} h left`;
}

function show(content) {
  const line = byId("training");
  render(content, line);
  line.hidden = content === nothing;
}

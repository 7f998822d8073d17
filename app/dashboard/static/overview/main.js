// @ts-check
/** The Overview page: health, the served version beside its baselines, customers, latest changes. */

import { call, describeModel, once, sendRequest } from "../shell/api.js";
import { byId, failure, html, render } from "../shell/html.js";
import { showBanner, showBusy, showServedVersion } from "../shell/page.js";
import { loadComparison, showComparison } from "./challenger.js";
import { showChanging, showLatest, showReadiness, showRun, showServing } from "./cards.js";
import { RUNS } from "../models/data.js";
import { CHANGED, LATEST, offerTakeAway } from "./take_away_entries.js";

/** What each card shows and when it came, by its id. */
const answers = new Map();

// Links to a customer led here before the page had a file of its own.
if (/[#&](user|history)=/.test(location.hash)) location.replace(`customers.html${location.hash}`);

/** What failed, by the part of a card: a click on "Try again" loads all of it. */
const failed = new Map();

/** Shows a part of a card, or why it cannot be shown; the others are shown all the same. */
async function fill(id, load, show) {
  const content = byId(`${id}-content`);
  render(html`<p class="note">Loading…</p>`, content);
  answers.delete(id);
  failed.delete(id);
  try {
    const answer = await load();
    render(show(answer), content);
    answers.set(id, { answer, at: Date.now() });
  } catch (error) {
    failed.set(id, () => fill(id, load, show));
    render(html`<p>${failure(error.message, retryAll)}</p>`, content);
  }
}

const retryAll = () => Promise.all([...failed.values()].map((retry) => retry()));

/** Reads which parts are ready: 503 where one is not. */
const readReadiness = () => call("health/ready", { usable: 503 });

const readModels = once(() => showServedVersion());
const readRuns = once(() => sendRequest(RUNS));

async function readServing() {
  const served = (await readModels()).find((model) => model.is_serving);
  if (served === undefined) return null;
  return { served, manifest: (await describeModel(served.version)).manifest };
}

async function start() {
  showBanner();
  offerTakeAway(answers);
  await Promise.all([
    fill("service", readReadiness, showReadiness),
    fill("serving", readServing, showServing),
    fill("changing", () => sendRequest(CHANGED), showChanging),
    fill("challenger", async () => loadComparison(await readModels(), await readRuns()), showComparison),
    fill("run", readRuns, showRun),
    fill("latest", () => sendRequest(LATEST), showLatest),
  ]);
  showBusy(false);
}

start();

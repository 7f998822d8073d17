// @ts-check
/** The Overview page: health, the served version beside its baselines, customers, latest changes. */

import { describeModel, listModels, sendRequest } from "../shell/api.js";
import { byId, html, render } from "../shell/html.js";
import { showBanner, showBusy, showVersion } from "../shell/page.js";
import { loadComparison, showComparison } from "./challenger.js";
import { showChanging, showLatest, showReadiness, showServing } from "./cards.js";
import { CHANGED, LATEST, offerTakeAway } from "./take_away_entries.js";

/** What each card shows and when it came, by its id. */
const answers = new Map();

// Links to a customer led here before the page had a file of its own.
if (/[#&](user|history)=/.test(location.hash)) location.replace(`customers.html${location.hash}`);

/** Shows a card, or why it cannot be shown; the other cards are shown all the same. */
async function fill(id, load, show) {
  const content = byId(`${id}-content`);
  render(html`<p class="note">Loading…</p>`, content);
  answers.delete(id);
  try {
    const answer = await load();
    render(show(answer), content);
    answers.set(id, { answer, at: Date.now() });
  } catch (error) {
    const retry = () => fill(id, load, show);
    render(
      html`<p class="refusal">${error.message}</p>
        <div class="buttons"><button type="button" @click=${retry}>Try again</button></div>`,
      content,
    );
  }
}

/** @returns {Promise<any>} null where the service does not answer */
async function readReadiness() {
  try {
    return await (await fetch(new URL("../health/ready", document.baseURI))).json();
  } catch {
    return null;
  }
}

/** @type {Promise<any[]> | null} */
let models = null;

/** The published versions, requested once for the cards that need them; again after a failure. */
function readModels() {
  models ??= listModels().catch((error) => {
    models = null;
    throw error;
  });
  return models;
}

async function readServing() {
  const models = await readModels();
  const served = models.find((model) => model.is_serving);
  showVersion(served?.version ?? "none");
  if (served === undefined) return null;
  return { served, manifest: (await describeModel(served.version)).manifest };
}

async function readLatest() {
  const [{ changes }, { runs }] = await Promise.all([
    sendRequest(LATEST.changes),
    sendRequest(LATEST.runs),
  ]);
  return { changes, run: runs[0] ?? null };
}

async function start() {
  showBanner();
  offerTakeAway(answers);
  await Promise.all([
    fill("service", readReadiness, showReadiness),
    fill("serving", readServing, showServing),
    fill("changing", () => sendRequest(CHANGED), showChanging),
    fill("challenger", async () => loadComparison(await readModels()), showComparison),
    fill("latest", readLatest, showLatest),
  ]);
  showBusy(false);
}

start();

// @ts-check
/** The Overview page: health, the served version beside its baselines, customers, latest changes. */

import { call, describeModel } from "../shell/api.js";
import { byId, failure, html, render } from "../shell/html.js";
import { showBanner, showBusy, showServedVersion } from "../shell/page.js";
import { showChanging, showLatest, showReadiness, showRun, showServing } from "./cards.js";

const CUSTOMERS = 12;
const CHANGES = 6;

// Links to a customer led here before the page had a file of its own.
if (/[#&](user|history)=/.test(location.hash)) location.replace(`customers.html${location.hash}`);

/** Shows a part of a card, or why it cannot be shown; the others are shown all the same. */
async function fill(id, load, show) {
  const content = byId(`${id}-content`);
  render(html`<p class="note">Loading…</p>`, content);
  try {
    render(show(await load()), content);
  } catch (error) {
    const retry = () => fill(id, load, show);
    render(html`<p>${failure(error.message, retry)}</p>`, content);
  }
}

/** Reads which parts are ready: 503 where one is not. */
const readReadiness = () => call("health/ready", { usable: 503 });

async function readServing() {
  const served = (await showServedVersion()).find((model) => model.is_serving);
  if (served === undefined) return null;
  return { served, manifest: (await describeModel(served.version)).manifest };
}

async function start() {
  showBanner();
  await Promise.all([
    fill("service", readReadiness, showReadiness),
    fill("serving", readServing, showServing),
    fill("changing", () => call("v1/overview/changes", { query: { n: CUSTOMERS } }), showChanging),
    fill("run", () => call("v1/training-runs", { query: { limit: 1 } }), showRun),
    fill("latest", () => call("v1/models/changes", { query: { limit: CHANGES } }), showLatest),
  ]);
  showBusy(false);
}

start();

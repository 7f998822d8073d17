/** The page: versions, one of them in detail, two beside each other, and changing which serves. */

import { formatInstant, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { heldKey, onKeyChange } from "../shell/key.js";
import {
  announce,
  clearProblem,
  showBanner,
  showBusy,
  showProblem,
  showVersion,
} from "../shell/page.js";
import { fillVersionSelect } from "../widgets/versions.js";
import { activate, rollBack, setTraffic } from "./changes.js";
import { ClicksChart } from "./clicks_chart.js";
import { showComparison } from "./comparison.js";
import { showFacts } from "./facts.js";
import { testMetrics } from "./metrics.js";
import { MetricsChart } from "./metrics_chart.js";
import { opponentOf } from "./opponent.js";
import { describeAll, readServing } from "./readings.js";
import { RunList } from "./runs.js";
import { showServing } from "./serving.js";
import { LINK } from "./state.js";
import { showTrail } from "./trail.js";
import { TrainingChart } from "./training_chart.js";
import { VersionsTable } from "./versions_table.js";
import { WindowsChart } from "./windows_chart.js";

/** Of a longer list the rest is described when asked for: a description opens the bundle. */
const MOST_DESCRIBED = 10;

let state = LINK.read();
/** What the service told last: see `readServing`; null before it did. */
let told = null;
/** Descriptions by version; null for one that was refused. */
let descriptions = new Map();
/** Whether all versions are to be described, however many there are. */
let wantsAll = false;
let loading = new AbortController();
let hasFailed = false;

const linkTo = (version, compare = null) => LINK.write({ ...state, version, compare });
const versions = new VersionsTable({ activate: (version) => change(activate, version), linkTo });
const runs = new RunList({ linkTo });
const charts = {
  metrics: new MetricsChart(),
  training: new TrainingChart(),
  windows: new WindowsChart(),
  clicks: new ClicksChart(),
};

/** Ask the service for everything anew, and show it. */
async function load() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  hasFailed = false;
  showBusy(true);
  try {
    told = await readServing(signal);
    showVersion(told.models.find((model) => model.is_serving)?.version ?? "none");
    const known = descriptions;
    descriptions = new Map();
    // What is on display stays until its successor is there.
    showLists(known);
    await describe(signal);
    clearProblem();
    await showAll();
    byId("as-of").textContent = `as of ${formatInstant(Date.now())} UTC`;
    showBusy(false);
  } catch (error) {
    // One that was aborted leaves the display to its successor.
    if (signal.aborted) return;
    hasFailed = true;
    showProblem(error);
  }
}

/** Describe what is to be shown, as far as it is not yet described. */
async function describe(signal) {
  const { chosen, other } = choose();
  const readable = told.models.filter((model) => model.refused === null);
  const wanted = readable.filter(
    (model, place) =>
      wantsAll || place < MOST_DESCRIBED || isOnDuty(model) || [chosen, other].includes(model.version),
  );
  const names = wanted.map((model) => model.version).filter((version) => !descriptions.has(version));
  await describeAll(names, (version, description) => descriptions.set(version, description), signal);
  showRest(readable.filter((model) => !descriptions.has(model.version)).length);
}

const isOnDuty = (model) =>
  model.is_current || model.is_serving || model.is_challenger || model.is_shadow;

/** Let the selects offer what there is; answers the version they show, and that beside it. */
function choose() {
  const { models } = told;
  const chosen = fillVersionSelect(byId("version"), models, state.version);
  const others = models.filter((model) => model.version !== chosen);
  const against = state.compare ?? opponentOf(chosen, told);
  const other = fillVersionSelect(byId("compare"), others, against);
  return { chosen, other };
}

function showRest(left) {
  const button = byId("describe-rest");
  button.hidden = left === 0;
  button.textContent = `Describe ${pluralize(left, "older version")}, too`;
}

function showLists(known) {
  const { models, changes } = told;
  const chosen = byId("version").value || state.version;
  showServing(told);
  versions.show(told, known, { chosen, metric: state.metric });
  const isUnknown = state.version !== null && !models.some((model) => model.version === state.version);
  byId("versions-note").textContent =
    models.length === 0
      ? "No version is published yet; kairos train and kairos publish make one."
      : isUnknown
        ? `${state.version} is not published here; another one is shown.`
        : "Figures of one row share their test questions; those of different rows mostly do not.";
  runs.show(told.runs, models);
  showTrail(changes);
}

/** Show everything by the state, all of it being described. */
async function showAll() {
  const { chosen, other } = choose();
  offerMetrics();
  showLists(descriptions);
  const one = descriptions.get(chosen) ?? null;
  for (const heading of ["detail-heading", "comparison-heading"]) {
    byId(heading).closest("section").hidden = one === null;
  }
  const drawn = [charts.clicks.show(told.models, descriptions)];
  if (one !== null) {
    byId("detail-name").textContent = byId("comparison-name").textContent = chosen;
    showFacts(one, told);
    showComparison(one, descriptions.get(other) ?? null, told.runs);
    drawn.push(
      charts.metrics.show(one, state.metric),
      charts.training.show(one),
      charts.windows.show(told.models, chosen),
    );
  }
  await Promise.all(drawn);
}

function offerMetrics() {
  const names = new Set([state.metric]);
  for (const description of descriptions.values()) {
    for (const name of testMetrics(description?.manifest.metrics ?? {}).metrics.keys()) names.add(name);
  }
  const select = byId("metric");
  select.replaceChildren(...[...names].sort().map((name) => element("option", { value: name }, name)));
  select.value = state.metric;
}

/** Show another state of what was told already. */
async function redisplay(update, { isNavigation = false } = {}) {
  state = { ...state, ...update };
  LINK.save(state, { isNavigation });
  if (told === null) return;
  const { signal } = loading;
  showBusy(true);
  try {
    await describe(signal);
    await showAll();
    if (!signal.aborted) showBusy(false);
  } catch (error) {
    if (!signal.aborted) showProblem(error);
  }
}

/** Have something changed, say what was done, and show what is served then. */
async function change(ask, ...subject) {
  if (told === null) return;
  const done = await (subject.length ? ask(...subject, told) : ask(told));
  if (done === null) return;
  byId("done").textContent = done;
  await load();
  announce(done);
}

function listen() {
  byId("version").addEventListener("change", ({ target }) =>
    redisplay({ version: target.value, compare: null }, { isNavigation: true }),
  );
  byId("compare").addEventListener("change", ({ target }) => redisplay({ compare: target.value }));
  byId("metric").addEventListener("change", ({ target }) => redisplay({ metric: target.value }));
  byId("describe-rest").addEventListener("click", () => {
    wantsAll = true;
    redisplay({});
  });
  byId("roll-back").addEventListener("click", () => change(rollBack));
  byId("set-traffic").addEventListener("click", () => change(setTraffic));
  byId("refresh").addEventListener("click", async () => {
    await load();
    announce("Refreshed.");
  });
  // Links to other versions, back, forward, and a fragment typed by hand.
  window.addEventListener("popstate", () => redisplay(LINK.read()));
  // Whoever was turned away comes in with a key from the banner.
  onKeyChange(() => {
    if (hasFailed && heldKey() !== null) load();
  });
}

showBanner();
listen();
load();

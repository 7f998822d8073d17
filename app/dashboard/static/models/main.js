// @ts-check
/** The page "Models": the versions, one in detail, two side by side, and changing which serves. */

import { formatInstant } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { heldKey, onKeyChange } from "../shell/key.js";
import { announce, clearProblem, showBanner, showBusy, showProblem, showVersion } from "../shell/page.js";
import { Permalink, text } from "../shell/permalink.js";
import { fillVersionSelect } from "../widgets/versions.js";
import { ClicksCard, ComparisonCard } from "./comparison_cards.js";
import { defaultOpponent, describeVersions, groupTestMetrics, loadServing } from "./data.js";
import { DetailCard } from "./detail_card.js";
import { showRuns, showTrail } from "./records_cards.js";
import { activate, rollBack, ServingCard, setTraffic } from "./serving_card.js";
import { offerTakeAway } from "./take_away_entries.js";
import { VersionsCard } from "./versions_card.js";

/**
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./data.js").ModelsState} ModelsState
 */

/** Older versions are described on request: the service opens a bundle to describe it. */
const MOST_DESCRIBED = 10;

/** The state of the page, with the API's names. */
const LINK = new Permalink({
  /** Null for the version that serves. */
  version: text(),
  /** Null for the default opponent. */
  compare: text(),
  metric: text(/** @type {any} */ ("ndcg@10")),
});

let state = LINK.read();
/** Null until the first response. */
let serving = /** @type {ModelsState | null} */ (null);
/**
 * By version; null for one that cannot be described.
 * @type {Map<string, Description | null>}
 */
let descriptions = new Map();
/** Whether to describe all versions, however many there are. */
let isAllDescribed = false;
let loading = new AbortController();
let hasFailed = false;
let hasMenus = false;

/**
 * @param {string} version
 * @param {string | null} compare
 */
const linkTo = (version, compare = null) => LINK.write({ ...state, version, compare });

const servingCard = new ServingCard(byId("serving-card"), {
  rollBack: () => change(rollBack),
  setTraffic: () => change(setTraffic),
});
const versionsCard = new VersionsCard(byId("versions-card"), {
  activate: (version) => change((current) => activate(version, current)),
  describeRest: () => {
    isAllDescribed = true;
    display({});
  },
  linkTo,
});
const detailCard = new DetailCard(byId("detail-card"), {
  chooseVersion: (version) => display({ version, compare: null }, { isNavigation: true }),
  chooseMetric: (metric) => display({ metric }),
});
const comparisonCard = new ComparisonCard(byId("comparison-card"), (compare) => display({ compare }));
const clicksCard = new ClicksCard(byId("clicks-card"));

/** Loads everything and shows it. */
async function load() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  hasFailed = false;
  showBusy(true);
  try {
    serving = await loadServing(signal, report);
    showVersion(serving.models.find((model) => model.is_serving)?.version ?? "none");
    const known = descriptions;
    descriptions = new Map();
    // The old metrics stay on display until the new ones are here.
    showLists(serving, known);
    await describe(serving, signal);
    clearProblem();
    await showAll(serving);
    byId("as-of").textContent = `as of ${formatInstant(Date.now())} UTC`;
    showBusy(false);
  } catch (error) {
    // An aborted load leaves the display to the next one.
    if (signal.aborted) return;
    hasFailed = true;
    if (serving === null) showVersion("unknown");
    showProblem(error, { retry: load });
  }
}

/**
 * Shows or hides why a part of the page is missing.
 *
 * @param {string} part
 * @param {Error | null} error
 */
function report(part, error) {
  if (error === null) {
    clearProblem(part);
    return;
  }
  hasFailed ||= error.name !== "AbortError";
  showProblem(error, { part, retry: load });
}

/**
 * Loads the missing descriptions of the versions on display.
 *
 * @param {ModelsState} serving
 * @param {AbortSignal} signal
 */
async function describe(serving, signal) {
  const { chosen, other } = fillSelects(serving);
  const missing = readable(serving).filter(
    (model, index) =>
      (isAllDescribed || index < MOST_DESCRIBED || hasRole(model) || [chosen, other].includes(model.version)) &&
      !descriptions.has(model.version),
  );
  const versions = missing.map((model) => model.version);
  const receive = (version, description) => descriptions.set(version, description);
  report("Descriptions of versions", await describeVersions(versions, receive, signal));
}

/** @param {ModelsState} serving */
const readable = ({ models }) => models.filter((model) => model.refused === null);

/** @param {Model} model */
const hasRole = (model) => model.is_current || model.is_serving || model.is_challenger || model.is_shadow;

/**
 * Fills the selects; returns the version in detail and the one to compare it with.
 *
 * @param {ModelsState} serving
 */
function fillSelects(serving) {
  const { models } = serving;
  const chosen = fillVersionSelect(byId("version"), models, state.version);
  const others = models.filter((model) => model.version !== chosen);
  const other = fillVersionSelect(byId("compare"), others, state.compare ?? defaultOpponent(chosen, serving));
  return { chosen, other };
}

/**
 * Shows the cards that need no description.
 *
 * @param {ModelsState} serving
 * @param {Map<string, Description | null>} known
 */
function showLists(serving, known) {
  const undescribed = readable(serving).filter(({ version }) => !descriptions.has(version));
  servingCard.show(serving);
  versionsCard.show({
    serving,
    descriptions: known,
    chosen: byId("version").value || state.version,
    requested: [state.version, state.compare].filter((version) => version !== null),
    metric: state.metric,
    undescribed: known === descriptions ? undescribed.length : 0,
  });
  showRuns(byId("runs-card"), serving.runs, serving.models, linkTo);
  showTrail(byId("trail-card"), serving.changes);
  // Two of the cards are first rendered here.
  if (!hasMenus) offerTakeAway({ shown: findShown, cards: { detail: detailCard, clicks: clicksCard } });
  hasMenus = true;
}

/** What the menus of the cards take away; null before the first response. */
function findShown() {
  if (serving === null) return null;
  const [one, other] = ["version", "compare"].map((id) => descriptions.get(byId(id).value) ?? null);
  return { serving, descriptions, one, other, metric: state.metric };
}

/**
 * Shows all cards; the versions on display are described.
 *
 * @param {ModelsState} serving
 */
async function showAll(serving) {
  const { chosen, other } = fillSelects(serving);
  showLists(serving, descriptions);
  const one = descriptions.get(chosen ?? "") ?? null;
  for (const card of ["detail-card", "comparison-card"]) byId(card).hidden = one === null;
  const drawn = [clicksCard.show(serving.models, descriptions)];
  if (one !== null) {
    comparisonCard.show(one, { version: other, description: descriptions.get(other ?? "") ?? null }, serving.runs);
    drawn.push(detailCard.show(one, serving, state.metric, metricNames()));
  }
  await Promise.all(drawn);
}

/** The test metrics of any version, and the chosen one. */
function metricNames() {
  const names = new Set([state.metric]);
  for (const description of descriptions.values()) {
    for (const name of groupTestMetrics(description?.manifest.metrics ?? {}).metrics.keys()) names.add(name);
  }
  return [...names].sort();
}

/**
 * Changes the state of the page, and shows it without loading everything again.
 *
 * @param {object} changes
 */
async function display(changes, { isNavigation = false } = {}) {
  state = { ...state, ...changes };
  LINK.save(state, { isNavigation });
  if (serving === null) return;
  const { signal } = loading;
  showBusy(true);
  try {
    await describe(serving, signal);
    await showAll(serving);
    if (!signal.aborted) showBusy(false);
  } catch (error) {
    if (!signal.aborted) showProblem(error, { retry: load });
  }
}

/**
 * Changes what is served with a dialog, and loads everything again.
 *
 * @param {(serving: ModelsState) => Promise<string | null>} confirm returns a sentence on what was done,
 *   or null if the user cancelled
 */
async function change(confirm) {
  if (serving === null) return;
  const done = await confirm(serving);
  if (done === null) return;
  servingCard.showDone(done);
  await load();
  announce(done);
}

function listen() {
  byId("refresh").addEventListener("click", async () => {
    await load();
    announce("Refreshed.");
  });
  // Links to other versions, back, forward, and an address typed by hand.
  window.addEventListener("popstate", () => display(LINK.read()));
  // A load that was refused is repeated with the key from the banner.
  onKeyChange(() => {
    if (hasFailed && heldKey() !== null) load();
  });
}

showBanner();
listen();
load();

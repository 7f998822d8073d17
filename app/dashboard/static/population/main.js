// @ts-check
/** The Population page: how attention on the last event decays, over many histories. */

import { Chart } from "../shell/chart.js";
import { byId } from "../shell/html.js";
import { announce, clearProblem, showBanner, showBusy, showProblem, showStale } from "../shell/page.js";
import { choice, list, Permalink, text } from "../shell/permalink.js";
import { showAsTable } from "../shell/tables.js";
import { SeriesLegend, seriesStyles } from "../widgets/series.js";
import { VersionPair } from "../widgets/versions.js";
import {
  ALL,
  buildChart,
  computeExtent,
  curveLabel,
  describeBands,
  describePoint,
  summarize,
  toCurves,
  toTable,
} from "./chart.js";
import { ExamplesCard } from "./examples_card.js";
import { offerTakeAway } from "./take_away_entries.js";

/**
 * @typedef {import("./chart.js").Curve} Curve
 * @typedef {import("./chart.js").Line} Line
 * @typedef {import("./chart.js").View} View
 */

const MOST_CURVES = 8;
const INITIAL_CURVES = 5;
/** @type {View[]} */
const VIEWS = ["observed", "predicted"];

const LINK = new Permalink({
  /** Null for the version that serves. */
  version: text(),
  compare: text(),
  by: choice("action", "category"),
  /** Names of curves, "" for that of all histories; null for the most frequent ones. */
  names: list(),
  /** The bands: standard error of the mean, or standard deviation. */
  band: choice("sem", "sd", "none"),
});

/** @type {any} */
let state = LINK.read();
/** @type {any[]} the descriptions of the version and the compared one; null for none */
let descriptions = [null, null];

const charts = new Map(VIEWS.map((view) => [view, new Chart(byId(`${view}-plot`))]));
/** @type {Map<View, Line[]>} the line of every trace */
const drawnLines = new Map();
/** @type {Line[]} the lines on display */
let shownLines = [];
const examples = new ExamplesCard();
const versions = new VersionPair((chosen) => load(chosen, { isNavigation: true }));
const legend = new SeriesLegend(byId("legend"), {
  choose: (names) => update({ names }),
  noun: "curves",
  most: MOST_CURVES,
});

/** Applies a choice of versions: requests their descriptions, and shows them. */
async function load(change, { isNavigation = false } = {}) {
  state = { ...state, ...change };
  LINK.save(state, { isNavigation });
  showBusy(true);
  showStale();
  try {
    const chosen = versions.show(state);
    const responses = await versions.describe(chosen);
    if (responses === null) return;
    descriptions = responses;
    clearProblem();
    show();
  } catch (error) {
    hide();
    showProblem(error, { retry: () => load({}) });
  }
}

/** Hides the curves of the versions that were chosen before. */
function hide() {
  descriptions = [null, null];
  byId("pictures").hidden = byId("examples").hidden = true;
  legend.show([], []);
  byId("legend-note").textContent = "";
}

/** Applies a change that needs no request. */
function update(change) {
  state = { ...state, ...change };
  LINK.save(state);
  show();
}

function show() {
  showControls();
  const [curves, compared] = descriptions.map((description) => toCurves(description, state.by));
  const names = [...new Set([...curves, ...compared].map((curve) => curve.name))];
  const chosen = chosenNames(names);
  const styles = seriesStyles(names);
  showLegend(names, [...compared, ...curves], styles, chosen);
  byId("legend-note").textContent = describeMissing(names).join(" ");
  byId("pictures").hidden = names.length === 0;
  const lines = [...toLines(curves, 0, styles), ...toLines(compared, 1, styles)];
  const shown = lines.filter((line) => chosen.includes(line.curve.name));
  shownLines = shown;
  examples.offer(shown, state.by);
  drawLines(shown);
}

/** @param {Line[]} lines */
function drawLines(lines) {
  showBusy(true);
  byId("band-note").textContent =
    lines.length > 0 ? describeBands(state.band, lines) : "No curve is chosen.";
  const extent = computeExtent(lines, state.band);
  const drawings = VIEWS.map((view) => drawView(view, lines, extent));
  Promise.all(drawings).then(() => showBusy(false), showProblem);
}

/**
 * @param {View} view
 * @param {Line[]} lines
 * @param {ReturnType<typeof computeExtent>} extent
 */
function drawView(view, lines, extent) {
  byId(`${view}-plot`).setAttribute("aria-label", summarize(lines, view) || "no curve is chosen");
  const caption = byId(`${view}-heading`).textContent;
  showAsTable(byId(`${view}-table`), { caption, ...toTable(lines, view) });
  /** @type {Line[]} */
  let drawn = [];
  return charts.get(view)?.draw(
    ({ width }) => {
      const chart = buildChart(lines, view, state.band, extent, width);
      drawn = chart.drawn;
      drawnLines.set(view, drawn);
      return chart;
    },
    ({ curveNumber, pointNumber }) => {
      const line = drawn[curveNumber];
      return describePoint(line, line.curve[view][pointNumber]);
    },
  );
}

/**
 * @param {Curve[]} curves
 * @param {number} index of the version: 0, or 1 for the compared one
 * @param {Map<string, any>} styles
 * @returns {Line[]}
 */
function toLines(curves, index, styles) {
  const description = descriptions[index];
  return curves.map((curve) => ({
    curve,
    label: curveLabel(curve.name),
    version: description.version,
    isCompared: index === 1,
    isShare: description.attention_is_normalised === true,
    style: styles.get(curve.name),
  }));
}

/**
 * @param {string[]} names
 * @param {Curve[]} curves of the same name, the last one counts
 * @param {Map<string, any>} styles
 * @param {string[]} chosen
 */
function showLegend(names, curves, styles, chosen) {
  const counts = new Map(curves.map((curve) => [curve.name, curve.histories]));
  const entries = names.map((name) => ({
    key: name,
    label: curveLabel(name),
    note: String(counts.get(name)),
    style: styles.get(name),
  }));
  legend.show(entries, chosen);
}

/** The names of the curves that are drawn: those of the state that exist, or the first ones. */
function chosenNames(names) {
  const chosen = state.names ?? names.slice(0, INITIAL_CURVES);
  return names.filter((name) => chosen.includes(name)).slice(0, MOST_CURVES);
}

/** What is shown where the only curve is that of all histories. */
const NO_NAMES = {
  action: "No action has a curve: the events that this version was trained on have none.",
  category:
    "No category has a curve: no item had one when this version was trained. " +
    "Import items with categories, then train again.",
};

/** Why curves are missing, a sentence each. */
function describeMissing(names) {
  if (descriptions[0] === null) return ["No version is published yet; train one with kairos retrain."];
  const sentences = descriptions
    .filter((description) => description !== null && !description.attention_profile?.length)
    .map(describeMissingProfile);
  if (names.length === 1 && names[0] === ALL) sentences.push(NO_NAMES[state.by]);
  return sentences;
}

function describeMissingProfile({ version, missing }) {
  const why = missing.find(({ part }) => part === "attention_profile")?.why;
  return (
    `${version} has no attention profile: ${why ?? "it has no points"}. ` +
    "Models with attention get one when they are trained with profile_histories above 0 in the recipe."
  );
}

/** @returns {HTMLInputElement} */
const byRadio = (by) => /** @type {any} */ (document.querySelector(`input[name="by"][value="${by}"]`));

function showControls() {
  byId("band").value = state.band;
  byRadio(state.by).checked = true;
}

function listen() {
  for (const [view, chart] of charts) {
    chart.on("plotly_click", ({ points: [{ curveNumber, pointNumber }] }) => {
      const line = drawnLines.get(view)?.[curveNumber];
      const point = line?.curve[view][pointNumber];
      if (line && point) examples.choose(line, point.interval);
    });
  }
  for (const by of ["action", "category"]) {
    byRadio(by).addEventListener("change", () => {
      update({ by, names: null });
      announce(`Curves by ${by}`);
    });
  }
  byId("band").addEventListener("change", ({ target }) => update({ band: target.value }));
  window.addEventListener("popstate", () => {
    state = LINK.read();
    load({});
  });
}

async function open() {
  try {
    await versions.open();
    await load({});
  } catch (error) {
    hide();
    showProblem(error, { retry: open });
  }
}

function start() {
  showBanner();
  showControls();
  listen();
  offerTakeAway({ views: VIEWS, charts, examples, lines: () => shownLines });
  open();
}

start();

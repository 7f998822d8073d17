/** The page: how attention on the last event fades, over a population. */

import { Chart } from "../shell/chart.js";
import { byId } from "../shell/html.js";
import {
  announce,
  clearProblem,
  showBanner,
  showBusy,
  showProblem,
  showStale,
} from "../shell/page.js";
import { showAsTable } from "../shell/tables.js";
import { SeriesLegend, seriesStyles } from "../widgets/series.js";
import { VersionPair } from "../widgets/versions.js";
import { ALL, curvesOf, namesOf, weighsShares } from "./curves.js";
import { extentOf, figure } from "./figure.js";
import { LINK } from "./state.js";
import { bandNote, labelOf, NO_NAMES, summaryOf, tableOf, tipOf, whyNone } from "./words.js";

const MOST_CURVES = 8;
const CHOSEN_AT_FIRST = 5;
const VIEWS = ["observed", "predicted"];

let state = LINK.read();
/** The descriptions of the version and the one it is compared with; null for none. */
let described = [null, null];

const charts = new Map(VIEWS.map((view) => [view, new Chart(byId(`${view}-plot`))]));
const versions = new VersionPair((chosen) => load(chosen, { isNavigation: true }));
const legend = new SeriesLegend(byId("legend"), {
  choose: (names) => redisplay({ names }),
  noun: "curves",
  most: MOST_CURVES,
});

/** Take over a choice of versions, and ask for them. */
async function load(update, { isNavigation = false } = {}) {
  state = { ...state, ...update };
  LINK.save(state, { isNavigation });
  showBusy(true);
  showStale();
  try {
    const chosen = versions.show(state);
    const answers = await versions.describe(chosen);
    if (answers === null) return;
    described = answers;
    clearProblem();
    show();
  } catch (error) {
    showProblem(error);
  }
}

/** Take over a change of the display alone. */
function redisplay(update) {
  state = { ...state, ...update };
  LINK.save(state);
  show();
}

function show() {
  showControls();
  const [curves, others] = described.map((description) => curvesOf(description, state.by));
  const names = namesOf(curves, others);
  const chosen = chosenOf(names);
  const styles = seriesStyles(names);
  legend.show(legendOf(names, curves, others, styles), chosen);
  byId("legend-note").textContent = notes(names).join(" ");
  byId("pictures").hidden = names.length === 0;
  const lines = [...linesOf(curves, 0), ...linesOf(others, 1)]
    .filter((line) => chosen.includes(line.curve.name))
    .map((line) => ({ ...line, style: styles.get(line.curve.name) }));
  drawLines(lines);
}

function drawLines(lines) {
  showBusy(true);
  const extent = extentOf(lines, state.band);
  byId("band-note").textContent = lines.length > 0 ? bandNote(state.band, lines) : "No curve is chosen.";
  const drawings = VIEWS.map((view) => drawView(view, lines, extent));
  Promise.all(drawings).then(() => showBusy(false), showProblem);
}

function drawView(view, lines, extent) {
  const summary = summaryOf(lines, view);
  const { columns, rows } = tableOf(lines, view);
  byId(`${view}-plot`).setAttribute("aria-label", summary || "no curve is chosen");
  showAsTable(byId(`${view}-table`), { caption: byId(`${view}-heading`).textContent, columns, rows });
  let drawn = [];
  const build = ({ width }) => {
    const picture = figure(lines, view, state.band, extent, width);
    drawn = picture.drawn;
    return picture;
  };
  const tell = ({ curveNumber, pointNumber }) => {
    const line = drawn[curveNumber];
    return tipOf(line, line.curve[view][pointNumber]);
  };
  return charts.get(view).draw(build, tell);
}

/** The lines of a version: the first, or the one it is compared with. */
function linesOf(curves, place) {
  const description = described[place];
  return curves.map((curve) => ({
    curve,
    label: labelOf(curve.name),
    version: description.version,
    isOther: place === 1,
    isShare: weighsShares(description),
  }));
}

function legendOf(names, curves, others, styles) {
  const counts = new Map([...others, ...curves].map((curve) => [curve.name, curve.histories]));
  return names.map((name) => ({
    key: name,
    label: labelOf(name),
    note: String(counts.get(name)),
    style: styles.get(name),
  }));
}

/** The names that are drawn: those of the link as far as there are such curves. */
function chosenOf(names) {
  const wanted = state.names ?? names.slice(0, CHOSEN_AT_FIRST);
  return names.filter((name) => wanted.includes(name)).slice(0, MOST_CURVES);
}

function notes(names) {
  const absent = described.filter((one) => one !== null && !one.attention_profile?.length).map(whyNone);
  if (described[0] === null) return ["No version is published yet; train one with kairos retrain."];
  const isAlone = names.length === 1 && names[0] === ALL;
  return isAlone ? [...absent, NO_NAMES[state.by]] : absent;
}

function showControls() {
  byId("band").value = state.band;
  document.querySelector(`input[name="by"][value="${state.by}"]`).checked = true;
}

function listen() {
  for (const radio of document.querySelectorAll('input[name="by"]')) {
    radio.addEventListener("change", () => {
      redisplay({ by: radio.value, names: null });
      announce(`Curves by ${radio.value}`);
    });
  }
  byId("band").addEventListener("change", ({ target }) => redisplay({ band: target.value }));
  window.addEventListener("popstate", () => {
    state = LINK.read();
    load({});
  });
}

async function start() {
  showBanner();
  showControls();
  listen();
  try {
    await versions.open();
    await load({});
  } catch (error) {
    showProblem(error);
  }
}

start();

// @ts-check
/** The Customers page: its state, its requests, and the cards that show them on one time axis. */

import { LatestRequest, listModels } from "../shell/api.js";
import { formatInstant, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import {
  announce,
  clearProblem,
  leadTab,
  showBanner,
  showBusy,
  showProblem,
  showVersion,
} from "../shell/page.js";
import { customerValues } from "../shell/permalink.js";
import { CustomerSearch } from "../widgets/customer_search.js";
import { BasketsCard } from "./baskets_card.js";
import {
  explain,
  isSameHistory,
  leaveOutBaskets,
  LINK,
  loadSwaps,
  OTHER_HISTORY,
  readLink,
  requestSweep,
  userLabel,
} from "./data.js";
import { chooseCustomer } from "./first_customer.js";
import { listenToKeys } from "./keys.js";
import { Linked } from "./linked.js";
import { showComparisons, showOptions } from "./options.js";
import { PasteDialog, showPasteNote } from "./pasted_history.js";
import { Player } from "./player.js";
import { PointInTime } from "./point_in_time.js";
import { RankingCard } from "./ranking_card.js";
import { RanksCard } from "./ranks_card.js";
import { Sweep } from "./sweep.js";
import { offerTakeAway } from "./take_away_entries.js";
import {
  chooseQueryTime,
  findAxis,
  findWhole,
  isShortest,
  loadSpan,
  moveInto,
  sweepInstants,
  zoom,
} from "./time_axis.js";
import { buildView } from "./view.js";
import { WhyCard } from "./why_card.js";

/** Milliseconds the query time rests before the link and the reasons follow. */
const REST = 200;
/** Parts of the page that may fail alone. */
const COMPARED = "The compared version";
const VERSIONS = "Published versions";

let state = readLink();
/** @type {import("./time_axis.js").Span | null} */
let span = null;
/** @type {Sweep | null} the response that the cards show */
let sweep = null;
/** @type {Sweep | null} that of the version it is compared with */
let otherSweep = null;
let loading = new AbortController();
/** @type {any[]} */
let models = [];
/** @type {{at: number, version: string}[]} */
let swaps = [];
/** The history that was pasted last. */
let pasted = null;
/** @type {Map<string, string | null>} titles by item id, of all responses so far */
const titles = new Map();
/** @type {any} */
let resting = null;
/** @type {number | null} */
let frame = null;
let isSelecting = false;

const linked = new Linked({
  change: () => requestStep(),
  keep: (pin) => {
    save({ pin });
    requestStep();
  },
});
const time = { linked, goTo, selectSpan, isSelecting: () => isSelecting };
const baskets = new BasketsCard({ ...time, toggleOpen });
const ranks = new RanksCard(time);
const ranking = new RankingCard({ linked });
const why = new WhyCard({ linked, leaveOut: (itemId) => leaveOutBaskets(state, itemId) });
const player = new Player({
  advance,
  onStop: () => rest(),
  changeSpeed: (speed) => save({ speed }),
});
const pointInTime = new PointInTime({ slide: goTo, enter, zoom: zoomAxis });
const search = new CustomerSearch(byId("customer-search"), {
  choose: (user) => open({ ...OTHER_HISTORY, user, query_time: null }),
});

const sweeps = new LatestRequest({
  send: requestSweep,
  show: (answer, request) => receive(answer, request),
  fail: (error) => fail(error),
});
const otherSweeps = new LatestRequest({
  send: requestSweep,
  show: (answer, { instants }) => {
    clearProblem(COMPARED);
    otherSweep = remember(new Sweep(answer, instants));
    showAll();
  },
  fail: (error) => showProblem(error, { part: COMPARED, retry: request }),
});

const reasons = new LatestRequest({
  send: explain,
  show: (answer, { query_time: at }) => {
    why.receive(answer, at);
    showBusy(false);
    measureOnce("kairos-all-charts");
  },
  fail: (error) => {
    why.fail(error.message, () => reasons.request(state));
    showBusy(false);
  },
});

function save(update, { isNavigation = false } = {}) {
  state = { ...state, ...update };
  LINK.save(state, { isNavigation });
}

/** Shows an error with a button that tries again; the cards are empty, not those of another customer. */
function fail(error) {
  player.enable(false);
  sweep = otherSweep = null;
  showAll();
  showProblem(error, { retry: openState });
}

/** Opens the history of the state, with a change of it. */
async function open(update = {}, { isNavigation = true, leftOut = /** @type {string[]} */ ([]) } = {}) {
  const next = { ...state, ...update };
  const isOther = sweep !== null && !isSameHistory(state, next);
  state = next;
  loading.abort();
  loading = new AbortController();
  clear();
  byId("user-name").textContent = userLabel(state);
  byId("customer-search").value = state.user ?? "";
  if (byId("paste-note")) showPasteNote(state.history, leftOut);
  linked.restore(state.pin);
  try {
    span = await loadSpan(state, loading.signal);
    state.query_time ??= chooseQueryTime(span);
    LINK.save(state, { isNavigation: isNavigation && isOther });
    state = { ...state, ...moveInto(state, state.query_time) };
    pointInTime.show(state.query_time);
    request();
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
  }
}

/** Requests the sweep of the state; the point in time alone comes first. */
function request() {
  showBusy(true);
  const instants = listInstants();
  if (sweep === null) sweeps.request({ state, instants: [state.query_time], isFirst: true });
  else sweeps.request({ state, instants });
  otherSweep = null;
  clearProblem(COMPARED);
  if (state.compare_version === null) otherSweeps.cancel();
  else otherSweeps.request({ state: { ...state, model_version: state.compare_version }, instants });
}

function listInstants() {
  const { query_time, compare_time, from, until } = state;
  const { last } = /** @type {any} */ (span);
  return sweepInstants({ ...axis(), last }, [query_time, compare_time, from, until]);
}

const axis = () => findAxis(state, /** @type {any} */ (span));

function receive(answer, { instants, isFirst = false }) {
  clearProblem();
  sweep = remember(new Sweep(answer, instants));
  showVersion(answer.model_version);
  alignSlider();
  showComparisons(state, models, answer.model_version);
  showAll();
  measureOnce("kairos-first-view");
  player.enable(!isFirst);
  if (isFirst) {
    sweeps.request({ state, instants: listInstants() });
    return;
  }
  measureOnce("kairos-sweep-drawn");
  settle();
}

function remember(one) {
  for (const { item_id: itemId, title } of one.named) titles.set(itemId, title);
  return one;
}

const nameOf = (itemId) => titles.get(itemId) || itemId;

const view = () => buildView(state, { sweep, otherSweep, span, swaps, nameOf });
const nearest = (at) => /** @type {Sweep} */ (sweep).nearest(at);

/** Draws every card anew. */
function showAll() {
  const shown = view();
  baskets.show(shown);
  ranks.show(shown);
  ranking.show(shown);
  why.show(shown);
  showFacts();
}

/** Draws what moves, in the next frame of the screen. */
function requestStep() {
  if (frame !== null) return;
  frame = requestAnimationFrame(() => {
    frame = null;
    step();
  });
}

function step() {
  const shown = view();
  baskets.step(shown);
  ranks.step(shown);
  ranking.show(shown);
  if (!player.isPlaying) why.show(shown);
}

function showFacts() {
  const facts = byId("facts");
  if (sweep === null) {
    facts.textContent = "";
    return;
  }
  const unknown = sweep.unknownItemIds.length;
  facts.textContent = [
    span?.last === null && state.history === null
      ? "No event of this customer is stored: this is what a new customer gets."
      : "",
    unknown > 0 ? `${pluralize(unknown, "item")} of the history unknown to the model, not read.` : "",
    isSelecting && state.from === null ? "Drag across a chart to choose the span." : "",
    state.compare_time !== null && state.compare_time === state.query_time
      ? "Now move the point in time: the list is compared with that of this time."
      : "",
  ].join(" ");
}

function clear() {
  player.enable(false);
  clearTimeout(resting);
  sweeps.cancel();
  otherSweeps.cancel();
  reasons.cancel();
  sweep = otherSweep = null;
  showBusy(true);
  showAll();
}

/** Lays the slider over the axis, with the instants that were swept. */
function alignSlider() {
  const width = byId("basket-rows").clientWidth;
  if (width === 0 || sweep === null) return;
  pointInTime.align(sweep.instants, view().scaleFor(width));
  pointInTime.show(state.query_time, nearest(state.query_time));
  pointInTime.showZoom({ isWhole: state.axis_from === null, isShortest: isShortest(axis()) });
}

/** Moves the point in time to any instant. */
function enter(at) {
  if (span === null) return;
  player.stop();
  save({ query_time: at, ...moveInto(state, at) });
  if (sweep?.indexAt(at) != null) follow(sweep.nearest(at));
  else request();
}

/** Draws a longer or shorter part of the time axis, with instants of its own. */
function zoomAxis(factor) {
  if (span === null) return;
  player.stop();
  change(zoom(axis(), findWhole(state, span), { around: state.query_time, factor }));
  showAll();
  alignSlider();
}

/** Moves the point in time to the swept instant that is nearest. */
function goTo(at) {
  player.stop();
  if (sweep !== null) follow(nearest(at));
}

function follow(index) {
  state = { ...state, query_time: /** @type {Sweep} */ (sweep).instants[index] };
  showBusy(true);
  reasons.cancel();
  pointInTime.show(state.query_time, index);
  requestStep();
  if (!player.isPlaying) rest();
}

/** Writes the link once the point in time stays where it is. */
function rest() {
  clearTimeout(resting);
  resting = setTimeout(() => {
    resting = null;
    LINK.save(state);
    settle();
  }, REST);
}

function settle() {
  if (resting !== null || player.isPlaying || !sweeps.isIdle) {
    setTimeout(() => resting === null && !player.isPlaying && sweeps.isIdle && settle(), REST);
    return;
  }
  showAll();
  const { items } = /** @type {Sweep} */ (sweep).at(nearest(state.query_time));
  announce(`${items.length} items for ${userLabel(state)} at ${formatInstant(state.query_time)} UTC`);
  reasons.request(state);
}

/** One step of the player; returns whether there is another. */
function advance(steps, { isFirst }) {
  const { first, last } = pointInTime.stops;
  if (isFirst) why.showWaiting();
  const now = nearest(state.query_time);
  const next = isFirst && now === last ? first : Math.min(now + steps, last);
  follow(next);
  return next < last;
}

function toggleOpen(at) {
  const text = new Date(at).toISOString();
  const isOpen = state.open.includes(text);
  save({ open: isOpen ? state.open.filter((one) => one !== text) : [...state.open, text] });
  showAll();
}

function selectSpan(from, until) {
  save({ from: Math.round(from), until: Math.round(until) });
  showFacts();
  requestStep();
}

function toggleSelecting() {
  isSelecting = !isSelecting;
  if (!isSelecting) save({ from: null, until: null });
  showSelecting();
  showFacts();
  requestStep();
}

function showSelecting() {
  const button = byId("span");
  button.setAttribute("aria-pressed", String(isSelecting));
  button.textContent = isSelecting ? "Leave the span" : "Average over a span";
  document.body.classList.toggle("selecting", isSelecting);
}

/** Applies a change of what is requested. */
function change(update) {
  save(update);
  showControls();
  request();
}

function compareWith(value) {
  if (value === "time") change({ compare_time: state.query_time, compare_version: null });
  else change({ compare_time: null, compare_version: value || null });
}

/** Opens a pasted history, with the settings of its request body. */
function openPasted({ history, settings, leftOut }) {
  pasted = history;
  state = { ...state, ...settings };
  showControls();
  open({ ...OTHER_HISTORY, history, query_time: settings.query_time ?? null }, { leftOut });
}

function showControls() {
  showOptions(state, { models, change });
  showComparisons(state, models, sweep?.version ?? null);
  player.showSpeed(state.speed);
}

/** Applies the state of the address bar. */
function followLink() {
  state = readLink();
  // A long history is in no link, but "back" within this page restores it.
  if (state.user === null) state.history ??= pasted;
  isSelecting = state.from !== null;
  showSelecting();
  showControls();
  openState();
}

/** Opens the history of the state; without one, that of some customer. */
function openState() {
  if (state.user !== null || state.history !== null) open({}, { isNavigation: false });
  else openAny();
}

/** Opens some customer, so that there is something to see. */
async function openAny() {
  try {
    showAll();
    const user = await chooseCustomer();
    if (user !== null) {
      open({ user }, { isNavigation: false });
      return;
    }
    byId("facts").textContent =
      "No events are stored yet: send some with POST /v1/events or kairos import-events, or paste a history (Options).";
    showBusy(false);
  } catch (error) {
    fail(error);
  }
}

/** Records the time since navigation, for the benchmark of the first view. */
function measureOnce(name) {
  if (performance.getEntriesByName(name).length === 0) performance.measure(name, { start: 0 });
}

function listen() {
  byId("compare").addEventListener("change", ({ target }) => compareWith(target.value));
  byId("span").addEventListener("click", toggleSelecting);
  document.addEventListener("kairos:model-changed", (event) => {
    if (state.model_version !== null || span === null) return;
    event.preventDefault();
    loadModels().then(request);
  });
  addEventListener("popstate", followLink);
  addEventListener("resize", alignSlider);
  listenToKeys({
    "/": () => byId("customer-search").focus(),
    " ": () => player.toggle(),
    "+": () => pointInTime.zoomIn(),
    "-": () => pointInTime.zoomOut(),
  });
}

async function start() {
  showBanner();
  leadTab("what_if.html", () => customerValues(state));
  listen();
  offerTakeAway({
    shown: () => (sweep === null ? null : { state, instants: sweep.instants }),
    cards: { baskets, ranks, ranking, why },
  });
  followLink();
  new PasteDialog(openPasted);
  loadModels();
}

/** Loads the published versions, and when each began to serve; the page can do without them. */
async function loadModels() {
  try {
    models = await listModels();
    if (sweep === null) showVersion(models.find((model) => model.is_serving)?.version ?? "none");
    showControls();
    swaps = (await loadSwaps()).map(({ at, version }) => ({ at: Date.parse(at), version }));
    clearProblem(VERSIONS);
  } catch (error) {
    showProblem(error, { part: VERSIONS, retry: loadModels });
  }
  if (sweep !== null) showAll();
}

start();
void search;

// @ts-check
/** The page "What if": a history, the edits made to it, and the recommendations before and after. */

import { LatestRequest, once } from "../shell/api.js";
import { live } from "../shell/directives.js";
import { parseFieldValue, toFieldValue } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import { onKeyChange } from "../shell/key.js";
import {
  announce,
  clearProblem,
  leadTab,
  showBanner,
  showBusy,
  showProblem,
  showServedVersion,
  showStale,
  showVersion,
} from "../shell/page.js";
import { choice, customerValues, flag, instant, integer, Permalink, text } from "../shell/permalink.js";
import { QueryTimeControl } from "../widgets/query_time.js";
import { UserPicker } from "../widgets/user_picker.js";
import { fillVersionSelect } from "../widgets/versions.js";
import { ScoresCard, WeightsCard } from "./comparison_charts.js";
import { addWeights, clearCache, compareHistories, compareItems, emptyHistory, loadHistory, scoresFailure } from "./data.js";
import * as edits from "./edits.js";
import { describeActions, EditsCard } from "./edits_card.js";
import { HistoryCard } from "./history_card.js";
import { describeScores, ItemsCard, summarize } from "./items_card.js";
import { offerTakeAway } from "./take_away_entries.js";

/**
 * @typedef {import("./data.js").Comparison} Comparison
 * @typedef {import("./edits.js").Edit} Edit
 */

/** The state of the page, with the API's names. */
const LINK = new Permalink({
  user: text(),
  /** Whether the edits start from the user's stored history or from an empty one. */
  history: choice("stored", "empty"),
  /** Before any edit; null until the last event of the history is known. */
  query_time: instant(),
  edits: edits.editsField(),
  n: integer(1, 100, 10),
  exclude_seen: flag(true),
  /** Null for the version that serves. */
  model_version: text(),
});

/** @type {any} */
let state = LINK.read();
/** @type {any[]} */
let models = [];
let history = emptyHistory(null);
/** The responses on display; null until the first for this history. */
let comparison = /** @type {Comparison | null} */ (null);
/** What the last edit changed: another edit of the same adds no entry to the browser's history. */
let lastEdited = /** @type {string | null} */ (null);
let opening = new AbortController();

const rows = () => edits.applyEdits(history.events, state.edits);
const endTime = () => edits.editedQueryTime(state.edits, state.query_time);

const itemsCard = new ItemsCard(byId("items-card"), setOptions);
const scoresCard = new ScoresCard(byId("scores-card"));
const weightsCard = new WeightsCard(byId("weights-card"));
const editsCard = new EditsCard(byId("edits-card"), {
  undo: (index) => setEdits(state.edits.toSpliced(index, 1)),
  reset: () => setEdits([]),
  add: addEvent,
});
const historyCard = new HistoryCard(byId("history-card"), {
  remove: (row) => setEdits(edits.removeEvent(state.edits, row)),
  removeBasket: (at) => setEdits(edits.removeBasket(state.edits, at)),
  restore: (row) => setEdits(edits.restoreEvent(state.edits, row)),
  move: (row, at) => setEdits(edits.moveEvent(state.edits, row, at), `when ${row.key}`),
  changeAction: (row, action) => setEdits(edits.changeAction(state.edits, row, action), `action ${row.key}`),
});
const queryTime = new QueryTimeControl((/** @type {number} */ at) =>
  setEdits(edits.changeQueryTime(state.edits, at, state.query_time), "query time", { isTyped: true }),
);
const picker = new UserPicker({
  choose: (/** @type {string} */ user) => open({ user, history: "stored" }),
});
const requests = new LatestRequest({
  send: compareHistories,
  show: showComparison,
  fail: (error) => {
    clearComparison();
    showHistory();
    showProblem(error, { retry: update });
  },
});

/**
 * Replaces the edits, and requests what follows from them.
 * @param {Edit[]} made
 * @param {string | null} subject what the edit changed
 */
function setEdits(made, subject = null, { isTyped = false } = {}) {
  if (state.query_time === null) return;
  const isFull = made.length > edits.MOST_EDITS;
  editsCard.showLimit(
    isFull ? `A link holds at most ${edits.MOST_EDITS} edits: undo one before you make another.` : null,
  );
  if (isFull) return;
  const isNavigation = subject === null || subject !== lastEdited;
  lastEdited = subject;
  state = { ...state, edits: made };
  LINK.save(state, { isNavigation });
  if (!isTyped) queryTime.show(endTime());
  update();
}

/**
 * Adds an event; returns why it cannot be added, or null.
 * @param {import("./edits.js").HistoryEvent} event
 * @param {string | null} title
 */
function addEvent(event, title) {
  const key = edits.eventKey(event);
  const isThere = rows().some(
    ({ itemId, after }) => after !== null && edits.eventKey({ itemId, ...after }) === key,
  );
  if (isThere) return "the history holds this very event: choose another instant or action";
  if (title) history.titles.set(event.itemId, title);
  setEdits([...state.edits, edits.createAddition(event)]);
  return null;
}

/**
 * Changes anything but the edits.
 * @param {object} changes
 */
function setOptions(changes) {
  state = { ...state, ...changes };
  lastEdited = null;
  LINK.save(state);
  queryTime.show(endTime());
  update();
}

/** Shows the history as edited, and requests the comparison. */
function update() {
  editsCard.followQueryTime(endTime());
  showControls();
  showHistory();
  showBusy(true);
  showStale();
  const { n, exclude_seen } = state;
  const edited = rows();
  const itemIds = [...state.edits.map((/** @type {any} */ edit) => (edit.of ?? edit).itemId)].filter(Boolean);
  const untitled = edited.map((row) => row.itemId).filter((itemId) => !history.titles.has(itemId));
  requests.request({
    rows: edited,
    begin: state.query_time,
    end: endTime(),
    n,
    exclude_seen,
    // A version that is not published is requested all the same: the service returns the reason.
    version: state.model_version ?? (versionSelect().value || null),
    alsoRank: [...itemIds, ...untitled],
  });
}

/** @param {Comparison} received */
function showComparison(received) {
  clearProblem();
  comparison = received;
  const failure = scoresFailure(received);
  if (failure === null) clearProblem("Scores");
  else showProblem(failure, { part: "Scores", retry: update });
  for (const { sweep, ranking } of [comparison.before, comparison.after]) {
    for (const item of [...ranking.items, ...sweep.events]) history.titles.set(item.item_id, item.title);
  }
  const items = compareItems(comparison);
  const summary = summarize(items);
  const isAttending = !comparison.after.sweep.warnings.includes("attention_unavailable");
  const shown = showHistory();
  showVersion(comparison.model.version);
  showControls();
  itemsCard.show(comparison, items);
  Promise.all([
    scoresCard.show(items, summary, describeScores(received)),
    weightsCard.show(shown, history.titles, isAttending),
  ]).then(() => showBusy(!requests.isIdle), showProblem);
  announce(summary);
}

/** Empties the cards that show a comparison: it is one of another history, version or edit. */
function clearComparison() {
  comparison = null;
  clearProblem("Scores");
  itemsCard.clear();
  scoresCard.clear();
  weightsCard.clear();
}

/** Shows the events and the edits with their weights; returns the rows. */
function showHistory() {
  const shown = addWeights(rows(), comparison);
  historyCard.show(shown, history.titles);
  editsCard.show({
    edits: state.edits,
    rows: shown,
    titles: history.titles,
    begin: state.query_time,
    model: comparison?.model ?? null,
  });
  return shown;
}

/** Opens a history; a link also holds its edits. */
async function open(/** @type {object} */ changes, { isNavigation = true } = {}) {
  opening.abort();
  opening = new AbortController();
  const { signal } = opening;
  requests.cancel();
  clearComparison();
  lastEdited = null;
  showStale();
  showBusy(true);
  const next = { ...state, query_time: null, edits: [], ...changes };
  state = { ...next, edits: [] };
  history = { ...emptyHistory(null), note: "" };
  picker.select(isStored() ? state.user : null);
  showControls();
  showHistory();
  try {
    const [stored] = await Promise.all([isStored() ? loadHistory(state.user, signal) : null, listModels()]);
    if (signal.aborted) return;
    history = stored ?? emptyHistory(trainedUntil());
  } catch (error) {
    if (!signal.aborted) showProblem(error, { retry: () => open(next, { isNavigation }) });
    return;
  }
  state.edits = next.edits;
  state.query_time ??= history.span.start;
  LINK.save(state, { isNavigation });
  historyCard.begin();
  editsCard.begin(history.actions);
  queryTime.setSpan(history.span);
  queryTime.show(endTime());
  fillVersions();
  update();
}

const isStored = () => state.history === "stored" && state.user !== null;

/** The end of the training data of the chosen version; null where no version is known. */
function trainedUntil() {
  const model = models.find(({ version }) => version === versionSelect().value);
  return model?.data_window ? Date.parse(model.data_window.last_at) : null;
}

const versionSelect = () => /** @type {HTMLSelectElement} */ (byId("version"));

/** Shows the first card, and the options of the list of items. */
function showControls() {
  render(startTemplate(), byId("start-card"));
  itemsCard.showOptions(state);
}

function startTemplate() {
  const chooseVersion = (/** @type {Event} */ { target }) => {
    const { value } = /** @type {HTMLSelectElement} */ (target);
    const isServing = models.some((model) => model.is_serving && model.version === value);
    setOptions({ model_version: isServing ? null : value });
  };
  const chooseTime = (/** @type {Event} */ { target }) => {
    const at = parseFieldValue(/** @type {HTMLInputElement} */ (target).value);
    if (at !== null) setOptions({ query_time: at });
  };
  const field = /** @type {HTMLInputElement | null} */ (document.getElementById("begin-field"));
  const isTyping = field !== null && field === document.activeElement;
  const time = isTyping ? field.value : state.query_time === null ? "" : toFieldValue(state.query_time);
  const name = isStored() ? `the history of ${state.user}` : "an empty history";
  const resetTime = () => setOptions({ query_time: history.span.start });
  return html`
    <div class="heading-row">
      <h2 id="start-heading">Edit
        <span id="history-name" class="id">${name}</span></h2>
      <div class="controls">
        <label>Version <select id="version" @change=${chooseVersion}></select></label>
      </div>
    </div>
    <p class="note">
      Edit the history below and compare the recommendations before and after. Nothing is stored: the
      edits are in this page's address only.
    </p>
    <div class="begin">
      <div class="field">
        <label for="begin-field">Point in time before (UTC)</label>
        <input id="begin-field" type="datetime-local" step="1" max="9999-12-31T23:59:59"
               .value=${live(time)} @input=${chooseTime}>
        <button type="button" class="plain" id="begin-last" @click=${resetTime}>just after the last event</button>
      </div>
      <p class="note">
        <span id="history-note">${history.note}</span>
        <span id="model-note">${comparison === null ? "" : describeActions(comparison.model)}</span>
      </p>
    </div>`;
}

function listen() {
  offerTakeAway({
    shown: () => comparison,
    cards: { scores: scoresCard, weights: weightsCard },
    titleOf: (itemId) => history.titles.get(itemId) ?? null,
  });
  byId("empty-history").addEventListener("click", () => open({ user: null, history: "empty" }));
  onKeyChange(clearCache);
  // Back, forward, and an address typed by hand; `pushState` raises no event.
  window.addEventListener("popstate", () => {
    /** @type {any} */
    const linked = LINK.read();
    const isSame = linked.user === state.user && linked.history === state.history;
    if (!isSame || linked.query_time === null) open(linked, { isNavigation: false });
    else {
      state = linked;
      lastEdited = null;
      fillVersions();
      queryTime.show(endTime());
      update();
    }
  });
}

/** Lists the versions; one that is not published is none of them, so that each can be chosen. */
function fillVersions() {
  const { model_version: linked } = state;
  if (fillVersionSelect(versionSelect(), models, linked) !== linked && linked !== null) versionSelect().value = "";
}

const listModels = once(async () => {
  models = await showServedVersion();
  fillVersions();
});

/** Lists the users; null if that fails. */
const listUsers = () => picker.open(listUsers);

async function start() {
  showBanner();
  leadTab("customers.html", () => customerValues(state));
  showControls();
  listen();
  // Not one after the other; `open` shows why it failed.
  listModels().catch(() => {});
  const isLinked = state.user !== null || state.history === "empty";
  if (isLinked) open(state, { isNavigation: false });
  const users = await listUsers();
  picker.select(state.history === "stored" ? state.user : null);
  if (isLinked) return;
  const first = users?.[0] ? { user: users[0].user_id } : { history: "empty" };
  open(first, { isNavigation: false });
}

start();

/** The page: a history, the edits made to it, and what the service says of both. */

import { LatestRequest } from "../shell/api.js";
import { parseFieldValue, toFieldValue } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { onKeyChange } from "../shell/key.js";
import {
  announce,
  clearProblem,
  showBanner,
  showBusy,
  showProblem,
  showServedVersion,
  showStale,
  showVersion,
} from "../shell/page.js";
import { QueryTimeControl } from "../widgets/query_time.js";
import { UserPicker } from "../widgets/user_picker.js";
import { fillVersionSelect } from "../widgets/versions.js";
import { showAccounts } from "./account.js";
import { AddForm } from "./add_form.js";
import { compare, forgetAnswers } from "./ask.js";
import { areComparable, comparedItems, weightedRows } from "./comparison.js";
import { EditLog } from "./edit_log.js";
import * as edits from "./edits.js";
import { EventsTable } from "./events_table.js";
import { emptyHistory, storedHistory } from "./history.js";
import { showItems, summaryOf } from "./items_table.js";
import { readingOf } from "./remarks.js";
import { ScoreChart } from "./score_chart.js";
import { COUNTS, LINK } from "./state.js";
import { WeightsChart } from "./weights_chart.js";

let state = LINK.read();
let models = [];
let history = emptyHistory(null);
/** The answers on display; null until there are some about this history. */
let answers = null;
/** What the last edit was about: an edit of the same again is not a step that "back" returns to. */
let lastEdited = null;
let opening = new AbortController();

const begin = () => state.query_time;
const end = () => edits.editedQueryTime(state.edits, begin());
const rows = () => edits.editedEvents(history.events, state.edits);

const scores = new ScoreChart();
const weights = new WeightsChart();
const form = new AddForm({ add });
const log = new EditLog({
  undo: (place) => change(state.edits.toSpliced(place, 1)),
  reset: () => change([]),
});
const table = new EventsTable({
  remove: (row) => change(edits.withRemoved(state.edits, row)),
  restore: (row) => change(edits.withoutRemoval(state.edits, row)),
  move: (row, at) => change(edits.withMoved(state.edits, row, at), `when ${row.key}`),
  act: (row, action) => change(edits.withAction(state.edits, row, action), `action ${row.key}`),
});
const queryTime = new QueryTimeControl((at) =>
  change(edits.withQueryTime(state.edits, at, begin()), "query time", { isTyped: true }),
);
const picker = new UserPicker({ choose: (user) => open({ user, history: "stored" }), fail: showProblem });
const asking = new LatestRequest({ send: compare, show: showAnswers, fail: showProblem });

/** Take over other edits, and ask what follows from them. */
function change(made, about = null, { isTyped = false } = {}) {
  if (begin() === null) return;
  const isFull = made.length > edits.MOST_EDITS;
  byId("edits-full").hidden = !isFull;
  if (isFull) {
    byId("edits-full").textContent =
      `A link holds at most ${edits.MOST_EDITS} edits: undo one before you make another.`;
    return;
  }
  const isNavigation = about === null || about !== lastEdited;
  lastEdited = about;
  state = { ...state, edits: made };
  LINK.save(state, { isNavigation });
  if (!isTyped) queryTime.show(end());
  ask();
}

function add(event, title) {
  const isThere = rows().some(
    (row) => row.after !== null && edits.keyOf({ itemId: row.itemId, ...row.after }) === edits.keyOf(event),
  );
  if (isThere) return "the history holds this very event: choose another instant or action";
  if (title) history.titles.set(event.itemId, title);
  change([...state.edits, edits.addition(event.itemId, event.action, event.at)]);
  return null;
}

/** Take over anything but an edit. */
function set(update) {
  state = { ...state, ...update };
  lastEdited = null;
  LINK.save(state);
  queryTime.show(end());
  ask();
}

function ask() {
  form.follow(end());
  showHistory();
  showBusy(true);
  showStale();
  const { n, exclude_seen } = state;
  const now = rows();
  const edited = state.edits.map((edit) => (edit.of ?? edit).itemId).filter(Boolean);
  const untold = now.map((row) => row.itemId).filter((itemId) => !history.titles.has(itemId));
  // One that is not published is asked for all the same: the service says why not.
  const version = state.model_version ?? (byId("version").value || null);
  const alsoRank = [...edited, ...untold];
  asking.request({ rows: now, begin: begin(), end: end(), n, exclude_seen, version, alsoRank });
}

function showAnswers(answered) {
  clearProblem();
  answers = answered;
  for (const { swept, ranked } of [answers.before, answers.after]) {
    for (const item of [...ranked.items, ...swept.events]) history.titles.set(item.item_id, item.title);
  }
  const items = comparedItems(answers);
  const said = summaryOf(items);
  const shown = showHistory();
  showVersion(answers.model.version);
  byId("model-note").textContent = readingOf(answers.model);
  showAccounts(answers);
  showItems(items, state.exclude_seen);
  byId("top-count").textContent = state.n;
  byId("top-summary").textContent = said;
  byId("top-note").textContent = areComparable(answers)
    ? "Every score is of this model; an item beyond a top list has a score there, but no rank."
    : "Scores do not compare: popularity, a count of events, ranks the items of a side without usable history.";
  byId("scores-summary").textContent = said;
  byId("no-weights").textContent = answers.after.swept.warnings.includes("attention_unavailable")
    ? "This model does not attend, so there are no weights to show."
    : "No event was read on either side, so there are no weights.";
  Promise.all([scores.show(items), weights.show(shown, history.titles)]).then(
    () => showBusy(!asking.isIdle),
    showProblem,
  );
  announce(said);
}

/** Show the events and the edits, with what the newest answers say of them; answers the rows. */
function showHistory() {
  const shown = weightedRows(rows(), answers);
  table.show(shown, history.titles);
  log.show({
    edits: state.edits,
    rows: shown,
    titles: history.titles,
    begin: begin(),
    model: answers?.model ?? null,
  });
  return shown;
}

/** Begin from another history; a link says which edits it comes with. */
async function open(update, { isNavigation = true } = {}) {
  opening.abort();
  opening = new AbortController();
  const { signal } = opening;
  asking.cancel();
  answers = null;
  lastEdited = null;
  showStale();
  showBusy(true);
  state = { ...state, query_time: null, edits: [], ...update };
  const isStored = state.history === "stored" && state.user !== null;
  picker.select(isStored ? state.user : null);
  byId("history-name").textContent = isStored ? `the history of ${state.user}` : "an empty history";
  try {
    history = isStored ? await storedHistory(state.user, signal) : emptyHistory(lastKnown());
    await listing;
  } catch (error) {
    showProblem(error);
    return;
  }
  if (signal.aborted) return;
  state.query_time ??= history.span.start;
  LINK.save(state, { isNavigation });
  table.begin();
  form.begin(history.actions);
  queryTime.setSpan(history.span);
  queryTime.show(end());
  showControls();
  ask();
}

/** When the data of the chosen version ends; null where no version is known. */
function lastKnown() {
  const model = models.find(({ version }) => version === byId("version").value);
  return model?.data_window ? Date.parse(model.data_window.last_at) : null;
}

function showControls() {
  const select = byId("n");
  const counts = [...new Set([...COUNTS, state.n])].sort((one, other) => one - other);
  select.replaceChildren(...counts.map((n) => element("option", { value: String(n) }, String(n))));
  select.value = state.n;
  byId("exclude-seen").checked = state.exclude_seen;
  byId("begin-field").value = toFieldValue(state.query_time);
  byId("history-note").textContent = history.note;
  fillVersionSelect(byId("version"), models, state.model_version);
}

function listen() {
  byId("n").addEventListener("change", ({ target }) => set({ n: Number(target.value) }));
  byId("exclude-seen").addEventListener("change", ({ target }) => set({ exclude_seen: target.checked }));
  byId("version").addEventListener("change", ({ target }) => {
    const isServing = models.some((model) => model.is_serving && model.version === target.value);
    set({ model_version: isServing ? null : target.value });
  });
  byId("begin-field").addEventListener("input", ({ target }) => {
    const at = parseFieldValue(target.value);
    if (at !== null) set({ query_time: at });
  });
  byId("begin-last").addEventListener("click", () => {
    byId("begin-field").value = toFieldValue(history.span.start);
    set({ query_time: history.span.start });
  });
  byId("empty-history").addEventListener("click", () => open({ user: null, history: "empty" }));
  onKeyChange(forgetAnswers);
  // Back, forward, and a fragment typed by hand; our own pushState raises neither.
  window.addEventListener("popstate", () => {
    const linked = LINK.read();
    const isSame = linked.user === state.user && linked.history === state.history;
    if (!isSame || linked.query_time === null) open(linked, { isNavigation: false });
    else {
      state = linked;
      lastEdited = null;
      showControls();
      queryTime.show(end());
      ask();
    }
  });
}

/** The published versions, which every question waits for. */
let listing = null;

async function list() {
  models = await showServedVersion();
  fillVersionSelect(byId("version"), models, state.model_version);
}

async function start() {
  showBanner();
  listen();
  listing = list();
  listing.catch(showProblem);
  const isAsked = state.user !== null || state.history === "empty";
  if (state.history === "empty") await listing.catch(() => {});
  const opened = isAsked ? open(state, { isNavigation: false }) : null;
  try {
    const users = await picker.open();
    picker.select(state.history === "stored" ? state.user : null);
    if (opened) return;
    if (users.length > 0) open({ user: users[0].user_id }, { isNavigation: false });
    else {
      await listing;
      open({ history: "empty" }, { isNavigation: false });
    }
  } catch (error) {
    showProblem(error);
  }
}

start();

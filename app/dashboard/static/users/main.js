/** The page: one state, what it asks of the service, and what it shows of the answer. */

import { LatestRequest, readHistory } from "../shell/api.js";
import { formatInstant } from "../shell/format.js";
import { byId } from "../shell/html.js";
import {
  announce,
  clearProblem,
  showBanner,
  showBusy,
  showProblem,
  showStale,
} from "../shell/page.js";
import { QueryTimeControl, queryTimeSpan } from "../widgets/query_time.js";
import { UserPicker } from "../widgets/user_picker.js";
import { listenToControls, showControls, showWhatIfLink } from "./controls.js";
import { OcclusionPanel } from "./occlusion_panel.js";
import { PasteDialog, showPasteNote } from "./paste_dialog.js";
import { eventsOf } from "./pasted.js";
import { Player } from "./play.js";
import { recommend } from "./questions.js";
import { isSameHistory, LINK, subjectOf } from "./state.js";
import { instantsOver } from "./sweep.js";
import { SweepPanel } from "./sweep_panel.js";
import { remember, View } from "./view.js";

const LONGEST_HISTORY = 1000;
/** How long, in milliseconds, the query time rests before the exact answer is asked for. */
const REST = 250;

let state = LINK.read();
/** The events shown, the instants the control covers, and those of them where the slider stops. */
let history = { events: [], span: queryTimeSpan([]), instants: [] };
/** The answer on display, and the instant it is for. */
let shown = null;
let loading = new AbortController();
/** The history that was pasted last. */
let pasted = null;
let resting = null;
let frame = null;

/** Titles and categories by item id, as far as answers have told them. */
const items = new Map();
const view = new View(items, (head) => redisplay({ head: head === state.head ? null : head }));
const queryTime = new QueryTimeControl((at) => goTo(at));
const picker = new UserPicker({
  choose: (user) => open({ user, history: null, query_time: null, explain_item_id: null }),
  fail: showProblem,
});
const sweeps = new SweepPanel({
  go: (at) => goTo(at),
  swept: (sweep) => {
    remember(items, sweep.named);
    player.enable(true);
  },
  items,
});
const player = new Player({
  advance,
  stopped: () => rest(),
  changeSpeed: (speed) => keep({ speed }),
});
const occlusion = new OcclusionPanel({
  choose: (itemId) => {
    keep({ explain_item_id: itemId });
    occlusion.want(state);
  },
  items,
});
const answers = new LatestRequest({
  send: recommend,
  show: (answer, { query_time: at }) => {
    clearProblem();
    sweeps.want(state, history, answer.model_version);
    player.enable(sweeps.sweep !== null);
    present(answer, at);
    occlusion.offer(answer.items, (answer.attention?.events.length ?? 0) > 0);
    if (state.explain_item_id !== null) occlusion.want(state);
    announce(`${answer.items.length} items for ${subjectOf(state)} at ${formatInstant(at)} UTC`);
  },
  fail: showProblem,
});

function keep(update, options) {
  state = { ...state, ...update };
  LINK.save(state, options);
}

/** Take over what the reader changed, and ask again. */
function change(update) {
  player.enable(false);
  stir();
  keep({ ...update, explain_item_id: null });
  sweeps.forget();
  occlusion.forget();
  view.forgetRanks();
  showBusy(true);
  answers.request(state);
}

/** Take over a change of the display alone. */
function redisplay(update) {
  keep(update);
  showBusy(true);
  if (shown !== null) present(shown.answer, shown.at);
}

/** Move the query time where the reader points. */
function goTo(at) {
  player.stop();
  follow(at);
}

/** Show another instant: what the sweep tells of it at once, the exact answer after a rest. */
function follow(at) {
  state = { ...state, query_time: at, explain_item_id: null };
  occlusion.forget();
  queryTime.show(at);
  showBusy(true);
  const place = sweeps.sweep?.placeOf(at) ?? null;
  stir();
  if (place === null) {
    LINK.save(state);
    answers.request(state);
    return;
  }
  answers.cancel();
  // However fast the slider moves, there is one picture per frame of the screen.
  frame ??= requestAnimationFrame(() => {
    frame = null;
    const now = sweeps.sweep?.placeOf(state.query_time) ?? null;
    if (now !== null) present(sweeps.sweep.answerAt(now), state.query_time);
  });
  if (!player.isPlaying) rest();
}

/** Ask for the exact answer, should the query time stay where it is. */
function rest() {
  stir();
  resting = setTimeout(() => {
    resting = null;
    LINK.save(state);
    answers.request(state);
  }, REST);
}

/** It does not stay. */
function stir() {
  clearTimeout(resting);
  resting = null;
}

/** One step of the player; whether there is another. */
function advance(steps, { isFirst }) {
  const { instants } = history;
  const last = instants.length - 1;
  const after = instants.findIndex((at) => at > state.query_time);
  const next = after < 0 ? (isFirst ? 0 : last) : Math.min(after + steps - 1, last);
  follow(instants[next]);
  return next < last;
}

/** Show the history of a user, or a pasted one, and ask for the answer at the state's instant. */
async function open(update = {}, { isNavigation = true, leftOut = [] } = {}) {
  const next = { ...state, ...update };
  const isOther = shown !== null && !isSameHistory(state, next);
  state = next;
  forget();
  picker.select(state.user);
  byId("user-name").textContent = subjectOf(state);
  showPasteNote(state.history, leftOut);
  try {
    const events = await eventsFor(state);
    const span = queryTimeSpan(events);
    history = { events, span, instants: instantsOver(span) };
    queryTime.setSpan(span, history.instants);
    state.query_time ??= span.start;
    queryTime.show(state.query_time);
    LINK.save(state, { isNavigation: isNavigation && isOther });
    answers.request(state);
  } catch (error) {
    showProblem(error);
  }
}

/** Leave behind whatever is on display. */
function forget() {
  loading.abort();
  loading = new AbortController();
  player.enable(false);
  stir();
  answers.cancel();
  sweeps.forget();
  occlusion.forget();
  view.forgetRanks();
  shown = null;
  showStale();
  showBusy(true);
}

async function eventsFor({ user, history: pasted }) {
  if (pasted !== null) return eventsOf(pasted);
  return (await readHistory(user, LONGEST_HISTORY, loading.signal)).map((event) => ({
    itemId: event.item_id,
    action: event.action,
    at: Date.parse(event.timestamp),
  }));
}

/** Ask about a pasted history, and as its request body did where there was one. */
function openPasted({ history: events, asked, leftOut }) {
  pasted = events;
  state = { ...state, ...asked };
  showAll();
  const query_time = asked.query_time ?? null;
  open({ user: null, history: events, query_time, explain_item_id: null }, { leftOut });
}

function present(answer, at) {
  shown = { answer, at };
  const heads = answer.attention?.heads?.length;
  if (heads !== undefined && state.head > heads) keep({ head: null });
  sweeps.moveTo(at);
  showWhatIfLink(state);
  view.show(answer, at, state, history).then(settle, showProblem);
  // Once the numbers are on the screen: the pictures come after them.
  requestAnimationFrame(() => setTimeout(() => noteOnce("kairos-first-numbers")));
}

function settle() {
  const isSettled = answers.isIdle && !player.isPlaying && resting === null && frame === null;
  showBusy(!isSettled);
  if (isSettled) noteOnce("kairos-first-view");
}

/** For the benchmark of the first view: how long after navigation this came. */
function noteOnce(name) {
  if (performance.getEntriesByName(name).length === 0) performance.measure(name, { start: 0 });
}

/** What a link says, whoever changed it. */
function followLink() {
  state = LINK.read();
  // A long one is in no link, but "back" within this page can still find it.
  if (state.user === null) state.history ??= pasted;
  showAll();
  if (state.user !== null || state.history !== null) open({}, { isNavigation: false });
}

function showAll() {
  showControls(state);
  player.showSpeed(state.speed);
}

async function start() {
  showBanner();
  showAll();
  listenToControls({ change, redisplay });
  new PasteDialog(openPasted);
  // Back, forward, and a fragment typed by hand; our own replaceState raises neither.
  window.addEventListener("popstate", followLink);
  const isAsked = state.user !== null || state.history !== null;
  if (isAsked) open();
  try {
    const users = await picker.open();
    if (isAsked) return;
    if (users.length > 0) open({ user: users[0].user_id });
    else byId("user-list-note").textContent = "No user has events yet; send some to /v1/events.";
  } catch (error) {
    showProblem(error);
  }
}

start();

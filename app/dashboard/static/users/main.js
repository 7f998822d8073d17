// @ts-check
/** The User page: its state, the player of the query time, and the cards that show a response. */

import { LatestRequest } from "../shell/api.js";
import { formatInstant } from "../shell/format.js";
import { byId, html, render } from "../shell/html.js";
import {
  announce,
  clearProblem,
  showBanner,
  showBusy,
  showProblem,
  showStale,
  showVersion,
} from "../shell/page.js";
import { QueryTimeControl, queryTimeSpan } from "../widgets/query_time.js";
import { UserPicker } from "../widgets/user_picker.js";
import { AttentionBars, Timeline } from "./attention_card.js";
import {
  COUNTS,
  isSameHistory,
  LINK,
  loadEvents,
  recommend,
  rememberItems,
  sweepInstants,
  userLabel,
  weightedHistory,
} from "./data.js";
import { HeadsCard } from "./heads_card.js";
import { HistoryCard, TopItemsCard } from "./item_tables.js";
import { OcclusionCard } from "./occlusion_card.js";
import { PasteDialog, showPasteNote } from "./pasted_history.js";
import { SweepCard } from "./sweep_card.js";

/** Milliseconds the query time rests before the exact response is requested. */
const REST = 250;
/** Milliseconds between two frames of the screen. */
const FRAME = 17;
/** Milliseconds per instant of the player. */
const PAUSES = { slow: 400, medium: 150, fast: 60 };
/** For users who prefer reduced motion: few steps, far apart. */
const REDUCED_MOTION = { pause: 1500, instants: 10 };

/** Moves the query time by itself, at the speed of `#speed`, between clicks on `#play`. */
class Player {
  #button = byId("play");
  #speed = byId("speed");
  #advance;
  #onStop;
  /** @type {any} */
  #timer = null;

  /**
   * @param {object} options
   * @param {(instants: number, step: {isFirst: boolean}) => boolean} options.advance moves on by so
   *   many instants; returns whether there are more
   * @param {() => void} options.onStop called whenever playing ends
   * @param {(speed: string) => void} options.changeSpeed
   */
  constructor({ advance, onStop, changeSpeed }) {
    this.#advance = advance;
    this.#onStop = onStop;
    this.#button.addEventListener("click", () => (this.isPlaying ? this.stop() : this.#play()));
    this.#speed.addEventListener("change", () => changeSpeed(this.#speed.value));
  }

  get isPlaying() {
    return this.#timer !== null;
  }

  showSpeed(speed) {
    this.#speed.value = speed;
  }

  /** Enables the controls, or stops and disables them. */
  enable(isPossible) {
    if (!isPossible) this.stop();
    this.#button.disabled = this.#speed.disabled = !isPossible;
  }

  stop() {
    if (!this.isPlaying) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#label("▶", "Play");
    this.#onStop();
  }

  #play() {
    this.#label("❚❚", "Pause");
    this.#step(true);
  }

  #step(isFirst) {
    const isReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pause = isReduced ? REDUCED_MOTION.pause : PAUSES[this.#speed.value];
    // Set before the step, which may stop the player.
    this.#timer = setTimeout(() => this.#step(false), pause);
    if (!this.#advance(isReduced ? REDUCED_MOTION.instants : 1, { isFirst })) this.stop();
  }

  #label(symbol, word) {
    this.#button.firstElementChild.textContent = symbol;
    this.#button.lastElementChild.textContent = word;
  }
}

let state = LINK.read();
/** The events, the span of the query time's control, and the instants where the slider stops. */
let history = { events: /** @type {any[]} */ ([]), span: queryTimeSpan([]), instants: [0] };
/** @type {{answer: any, at: number} | null} the response on display, and its instant */
let shown = null;
let loading = new AbortController();
/** The history that was pasted last. */
let pasted = null;
/** @type {any} the timer of REST */
let resting = null;
/** @type {number | null} */
let frame = null;

/** @type {import("./data.js").Items} of all responses so far */
const items = new Map();
const bars = new AttentionBars();
const timeline = new Timeline();
const heads = new HeadsCard((head) => redisplay({ head: head === state.head ? null : head }));
const topItems = new TopItemsCard();
const historyCard = new HistoryCard((event) => bars.highlight(event));
const queryTime = new QueryTimeControl((at) => goTo(at));
const picker = new UserPicker({
  choose: (user) => open({ user, history: null, query_time: null, explain_item_id: null }),
  fail: showProblem,
});
const sweeps = new SweepCard({
  go: (at) => goTo(at),
  onSweep: (sweep) => {
    rememberItems(items, sweep.named);
    player.enable(true);
  },
  items,
});
const player = new Player({
  advance,
  onStop: () => requestAfterRest(),
  changeSpeed: (speed) => save({ speed }),
});
const occlusion = new OcclusionCard({
  choose: (itemId) => {
    save({ explain_item_id: itemId });
    occlusion.request(state);
  },
  items,
});
const answers = new LatestRequest({
  send: recommend,
  show: (answer, { query_time: at }) => {
    clearProblem();
    const isFirst = shown === null;
    const inView = present(answer, at);
    player.enable(sweeps.sweep !== null);
    const requestSweep = () => sweeps.request(state, history, answer.model_version);
    // The service may compute it on the browser's own processors: the first charts go before.
    if (isFirst) inView.then(() => shown?.answer === answer && requestSweep(), () => {});
    else requestSweep();
    occlusion.offer(answer.items, (answer.attention?.events.length ?? 0) > 0);
    if (state.explain_item_id !== null) occlusion.request(state);
    announce(`${answer.items.length} items for ${userLabel(state)} at ${formatInstant(at)} UTC`);
  },
  fail: showProblem,
});

function save(update) {
  state = { ...state, ...update };
  LINK.save(state);
}

/** Applies a change of the request. */
function change(update) {
  player.enable(false);
  cancelRest();
  save({ ...update, explain_item_id: null });
  sweeps.clear();
  occlusion.clear();
  topItems.clear();
  showBusy(true);
  answers.request(state);
}

/** Applies a change of the display alone. */
function redisplay(update) {
  save(update);
  showBusy(true);
  if (shown !== null) present(shown.answer, shown.at);
}

/** Moves the query time to where the user points. */
function goTo(at) {
  player.stop();
  follow(at);
}

/** Shows another instant: that of the sweep at once, the exact response after a rest. */
function follow(at) {
  state = { ...state, query_time: at, explain_item_id: null };
  occlusion.clear();
  queryTime.show(at);
  showBusy(true);
  cancelRest();
  if ((sweeps.sweep?.indexAt(at) ?? null) === null) {
    LINK.save(state);
    answers.request(state);
    return;
  }
  answers.cancel();
  // One drawing per frame of the screen, however fast the slider moves.
  frame ??= requestAnimationFrame(() => {
    frame = null;
    const index = sweeps.sweep?.indexAt(state.query_time) ?? null;
    if (index !== null) present(sweeps.sweep?.answerAt(index), state.query_time);
  });
  if (!player.isPlaying) requestAfterRest();
}

/** Requests the exact response if the query time stays where it is. */
function requestAfterRest() {
  cancelRest();
  resting = setTimeout(() => {
    resting = null;
    LINK.save(state);
    answers.request(state);
  }, REST);
}

function cancelRest() {
  clearTimeout(resting);
  resting = null;
}

/** One step of the player; returns whether there is another. */
function advance(steps, { isFirst }) {
  const { instants } = history;
  const last = instants.length - 1;
  const after = instants.findIndex((at) => at > state.query_time);
  const next = after < 0 ? (isFirst ? 0 : last) : Math.min(after + steps - 1, last);
  follow(instants[next]);
  return next < last;
}

/** Opens the history of a user, or a pasted one, at the state's query time. */
async function open(update = {}, { isNavigation = true, leftOut = /** @type {string[]} */ ([]) } = {}) {
  const next = { ...state, ...update };
  const isOther = shown !== null && !isSameHistory(state, next);
  state = next;
  clear();
  picker.select(state.user);
  byId("user-name").textContent = userLabel(state);
  showPasteNote(state.history, leftOut);
  try {
    const events = await loadEvents(state, loading.signal);
    const span = queryTimeSpan(events);
    history = { events, span, instants: sweepInstants(span) };
    queryTime.setSpan(span, history.instants);
    state.query_time ??= span.start;
    queryTime.show(state.query_time);
    LINK.save(state, { isNavigation: isNavigation && isOther });
    answers.request(state);
  } catch (error) {
    showProblem(error);
  }
}

/** Cancels everything of the history on display. */
function clear() {
  loading.abort();
  loading = new AbortController();
  player.enable(false);
  cancelRest();
  answers.cancel();
  sweeps.clear();
  occlusion.clear();
  topItems.clear();
  shown = null;
  showStale();
  showBusy(true);
}

/** Opens a pasted history, with the settings of its request body. */
function openPasted({ history: events, settings, leftOut }) {
  pasted = events;
  state = { ...state, ...settings };
  showControls();
  const query_time = settings.query_time ?? null;
  open({ user: null, history: events, query_time, explain_item_id: null }, { leftOut });
}

/** Shows a response for an instant. Resolves once the charts at the top are drawn. */
function present(answer, at) {
  const isFirst = shown === null;
  shown = { answer, at };
  const count = answer.attention?.heads?.length;
  if (count !== undefined && state.head > count) save({ head: null });
  sweeps.moveTo(at);
  showWhatIfLink();
  const { inView, all } = showAnswer(answer, at, isFirst);
  inView.then(() => measureOnce("kairos-first-view"), () => {});
  all.then(settle, showProblem);
  // Once the numbers are on the screen; the charts are drawn after them.
  requestAnimationFrame(() => setTimeout(() => measureOnce("kairos-first-numbers")));
  return inView;
}

/**
 * Shows a response.
 *
 * @returns promises: `inView` resolves once the charts at the top are drawn, `all` once every chart is
 */
function showAnswer(answer, at, isFirst) {
  rememberItems(items, [...answer.items, ...(answer.attention?.events ?? [])]);
  const count = answer.attention?.heads?.length;
  // A sweep has the mean over heads alone.
  const head = count === undefined ? null : state.head;
  if (count !== undefined) showHeads(count, head);
  const { events: stored, span } = history;
  const events = weightedHistory(stored, answer, at, head === null ? null : head - 1);
  showVersion(answer.model_version);
  topItems.show(answer, at, stored.filter((event) => event.at <= at).length);
  const showHistory = () => shown?.answer === answer && historyCard.show(events, items);
  const drawn = { events, items, queryTime: at, span, scale: state.scale };
  const inView = Promise.all([timeline.show(drawn), bars.show(drawn, answer, head)]);
  // The table has hundreds of rows further down the page, which the browser would lay out again for
  // each chart: it waits for the charts at the top, even if these cannot be drawn.
  const withHistory = isFirst
    ? inView.then(waitForFrame, waitForFrame).then(showHistory)
    : showHistory();
  const withHeads = inView.then(waitForFrame).then(() => {
    if (shown?.answer === answer) return heads.show(answer, { ...drawn, head });
  });
  return { inView, all: Promise.all([withHistory, withHeads]) };
}

// A tab in the background has no animation frames.
const waitForFrame = () => new Promise((resolve) => setTimeout(resolve, FRAME));

function settle() {
  const isSettled = answers.isIdle && !player.isPlaying && resting === null && frame === null;
  showBusy(!isSettled);
  if (isSettled) measureOnce("kairos-all-charts");
}

/** Records the time since navigation, for the benchmark of the first view. */
function measureOnce(name) {
  if (performance.getEntriesByName(name).length === 0) performance.measure(name, { start: 0 });
}

/** Applies the state of the address bar. */
function followLink() {
  state = LINK.read();
  // A long history is in no link, but "back" within this page restores it.
  if (state.user === null) state.history ??= pasted;
  showControls();
  if (state.user !== null || state.history !== null) open({}, { isNavigation: false });
}

function listenToControls() {
  const on = (id, update) =>
    byId(id).addEventListener("change", ({ target }) => change(update(target)));
  on("n", ({ value }) => ({ n: Number(value) }));
  on("exclude-seen", ({ checked }) => ({ exclude_seen: checked }));
  on("withheld", ({ checked }) => ({ query_time_withheld: checked }));
  byId("head").addEventListener("change", ({ target: { value } }) =>
    redisplay({ head: value === "" ? null : Number(value) }),
  );
  for (const radio of scaleRadios()) {
    radio.addEventListener("change", () => redisplay({ scale: radio.value }));
  }
}

/** Shows the state in the controls. */
function showControls() {
  const counts = [...new Set([...COUNTS, state.n])].sort((one, other) => one - other);
  render(
    counts.map((n) => html`<option value=${n}>${n}</option>`),
    byId("n"),
  );
  byId("n").value = state.n;
  byId("exclude-seen").checked = state.exclude_seen;
  byId("withheld").checked = state.query_time_withheld;
  for (const radio of scaleRadios()) radio.checked = radio.value === state.scale;
  showHeads(state.head ?? 0, state.head);
  player.showSpeed(state.speed);
}

const scaleRadios = () =>
  /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll('input[name="scale"]'));

/** Offers so many heads; `chosen` is the number of one, or null for their mean. */
function showHeads(count, chosen) {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  render(
    html`<option value="">mean of all</option>
      ${numbers.map((head) => html`<option value=${head}>head ${head}</option>`)}`,
    byId("head"),
  );
  byId("head").value = chosen ?? "";
}

/** Links to the What if page for the same user and instant; there is none for a pasted history. */
function showWhatIfLink() {
  const link = byId("what-if");
  link.hidden = state.user === null;
  if (state.user === null) return;
  const query_time = new Date(state.query_time).toISOString();
  link.href = `what_if.html#${new URLSearchParams({ user: state.user, query_time })}`;
}

async function start() {
  showBanner();
  showControls();
  listenToControls();
  new PasteDialog(openPasted);
  // Back, forward, and a fragment typed by hand; replaceState raises neither.
  window.addEventListener("popstate", followLink);
  const isChosen = state.user !== null || state.history !== null;
  if (isChosen) open();
  try {
    const users = await picker.open();
    if (isChosen) return;
    if (users.length > 0) open({ user: users[0].user_id });
    else byId("user-list-note").textContent = "No user has events yet; send some to /v1/events.";
  } catch (error) {
    showProblem(error);
  }
}

start();

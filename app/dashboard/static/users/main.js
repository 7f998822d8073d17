/** The page: one state, what it asks of the service, and what it shows of the answer. */

import { readHistory } from "../shell/api.js";
import { showBanner, showVersion } from "../shell/banner.js";
import { byId, element } from "../shell/dom.js";
import { asText } from "../shell/instants.js";
import { Latest } from "../shell/latest.js";
import { percent } from "../shell/numbers.js";
import { announce, clearProblem, showBusy, showProblem, showStale } from "../shell/problem.js";
import { QueryTime, spanOf } from "../widgets/query_time.js";
import { showTopItems } from "../widgets/top_items.js";
import { UserPicker } from "../widgets/user_picker.js";
import { showAccount } from "./account.js";
import { AttentionPlot } from "./attention_plot.js";
import { HistoryTable } from "./history_table.js";
import { recommend } from "./recommend.js";
import { COUNTS, LINK } from "./state.js";
import { weightedHistory } from "./weighted_history.js";

const LONGEST_HISTORY = 1000;

let state = LINK.read();
/** The shown user's events, the titles that answers have told, and the instants the slider covers. */
let history = { events: [], titles: new Map(), span: spanOf([]) };
/** The answer on display, and the instant it is for. */
let answered = null;
let loadingUser = new AbortController();

const plot = new AttentionPlot();
const table = new HistoryTable((event) => plot.point(event));
const queryTime = new QueryTime((at) => change({ query_time: at }));
const picker = new UserPicker({
  choose: (user) => openUser(user, { query_time: null }),
  fail: showProblem,
});
const answers = new Latest({
  ask: recommend,
  show: (answer, { query_time: at }) => {
    clearProblem();
    answered = { answer, at };
    showAnswer();
  },
  fail: showProblem,
});

/** Take over what the reader changed, and ask again. */
function change(update) {
  state = { ...state, ...update };
  LINK.keep(state);
  showBusy(true);
  answers.want(state);
}

/** Take over a change of the display alone. */
function redisplay(update) {
  state = { ...state, ...update };
  LINK.keep(state);
  showBusy(true);
  if (answered) showAnswer();
}

/** Show a user's history, and ask for the answer at the state's instant. */
async function openUser(user, update = {}) {
  loadingUser.abort();
  loadingUser = new AbortController();
  const { signal } = loadingUser;
  answers.drop();
  answered = null;
  showStale();
  showBusy(true);
  const isMove = state.user !== null && state.user !== user;
  state = { ...state, ...update, user };
  picker.mark(user);
  byId("user-name").textContent = user;
  try {
    const events = (await readHistory(user, LONGEST_HISTORY, signal)).map((event) => ({
      itemId: event.item_id,
      action: event.action,
      at: Date.parse(event.timestamp),
    }));
    history = { events, titles: new Map(), span: spanOf(events) };
    queryTime.cover(history.span);
    state.query_time ??= history.span.start;
    queryTime.show(state.query_time);
    LINK.keep(state, { isMove });
    answers.want(state);
  } catch (error) {
    showProblem(error);
  }
}

function showAnswer() {
  const { answer, at } = answered;
  const named = [...answer.items, ...(answer.attention?.events ?? [])];
  for (const { item_id: itemId, title } of named) history.titles.set(itemId, title);
  offerHeads(answer.attention?.heads?.length ?? 0);
  const events = weightedHistory(history.events, answer, at, state.head === null ? null : state.head - 1);
  showVersion(answer.model_version);
  showAccount(answer, history.events.filter((event) => event.at <= at).length);
  showTopItems(answer.items);
  table.show(events, history.titles);
  byId("plot-summary").textContent = summary(events, answer);
  plot
    .show({
      events,
      titles: history.titles,
      queryTime: at,
      span: history.span,
      scale: state.scale,
    })
    .then(() => showBusy(!answers.isIdle), showProblem);
  announce(`${answer.items.length} items for ${state.user} at ${asText(at)} UTC`);
}

/** Which weights these are, and the heaviest event. */
function summary(events, answer) {
  const read = events.filter((event) => event.part === "read");
  if (read.length === 0) return "No event was read at this instant, so there are no weights.";
  const heaviest = read.reduce((one, other) => (other.weight > one.weight ? other : one));
  const title = history.titles.get(heaviest.itemId) || heaviest.itemId;
  const which = state.head === null ? "averaged over heads" : `of head ${state.head}`;
  const sum = answer.attention.normalised ? ", summing to 100 %" : "";
  const count = read.length === 1 ? "1 event" : `${read.length} events`;
  const ticks = read.length < events.length ? " Ticks on the axis are events without a weight." : "";
  return (
    `Weights of the last block at the query position, ${which}, over the ${count} read${sum}. ` +
    `Most weighted: ${title}, ${percent(heaviest.weight)}.${ticks}`
  );
}

function offerHeads(count) {
  const select = byId("head");
  if (state.head !== null && state.head > count) state.head = null;
  if (select.options.length !== count + 1) {
    const heads = Array.from({ length: count }, (_, head) =>
      element("option", { value: String(head + 1) }, `head ${head + 1}`),
    );
    select.replaceChildren(element("option", { value: "" }, "mean of all"), ...heads);
  }
  select.value = state.head ?? "";
}

/** Let the controls say what the state says. */
function showControls() {
  const select = byId("n");
  const counts = [...new Set([...COUNTS, state.n])].sort((one, other) => one - other);
  select.replaceChildren(...counts.map((n) => element("option", { value: String(n) }, String(n))));
  select.value = state.n;
  byId("exclude-seen").checked = state.exclude_seen;
  byId("withheld").checked = state.query_time_withheld;
  document.querySelector(`input[name="scale"][value="${state.scale}"]`).checked = true;
  offerHeads(state.head ?? 0);
}

function listen() {
  byId("n").addEventListener("change", (event) => change({ n: Number(event.target.value) }));
  byId("exclude-seen").addEventListener("change", (event) =>
    change({ exclude_seen: event.target.checked }),
  );
  byId("withheld").addEventListener("change", (event) =>
    change({ query_time_withheld: event.target.checked }),
  );
  byId("head").addEventListener("change", ({ target }) =>
    redisplay({ head: target.value === "" ? null : Number(target.value) }),
  );
  for (const radio of document.querySelectorAll('input[name="scale"]')) {
    radio.addEventListener("change", () => redisplay({ scale: radio.value }));
  }
  // Back, forward, and a fragment typed by hand; our own replaceState raises neither.
  window.addEventListener("popstate", () => {
    state = LINK.read();
    showControls();
    if (state.user !== null) openUser(state.user);
  });
}

async function start() {
  showBanner();
  showControls();
  listen();
  const asked = state.user;
  const opening = asked === null ? null : openUser(asked);
  try {
    const users = await picker.open();
    if (opening) return;
    if (users.length > 0) openUser(users[0].user_id);
    else byId("user-list-note").textContent = "No user has events yet; send some to /v1/events.";
  } catch (error) {
    showProblem(error);
  }
}

start();

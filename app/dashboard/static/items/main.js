// @ts-check
/** The Items page: an item, its similar items, its popularity, and the map of all items. */

import { modelRequest, Problem, sendRequest } from "../shell/api.js";
import { formatCount } from "../shell/format.js";
import { byId, html, itemName, render } from "../shell/html.js";
import { announce, clearProblem, showBanner, showProblem, showServedVersion } from "../shell/page.js";
import { ItemSearch } from "../widgets/item_search.js";
import { describeMissing, fillVersionSelect } from "../widgets/versions.js";
import {
  ConcurrentRequests,
  itemRequest,
  LINK,
  MAP_SIZES,
  mapRequest,
  popularityRequest,
  recipientsRequest,
  settle,
  similarRequest,
} from "./data.js";
import { onItemClick, PopularList, showFacts, showNoSimilar, showSimilar } from "./item_card.js";
import { MapCard } from "./map_card.js";
import { PopularityCard } from "./popularity_card.js";
import { RecipientsCard } from "./recipients_card.js";
import { offerTakeAway } from "./take_away_entries.js";

const SIMILAR = 10;
/** What says how many item vectors there are, and of how many dimensions. */
const MANIFEST = "Version's manifest";

/** @typedef {import("../shell/api.js").ApiRequest} ApiRequest */

/** @type {Record<string, any>} */
let state = LINK.read();
/** The published versions. */
let models = [];
/** What is known of the chosen item. */
let item = nothingKnown();

const requests = new ConcurrentRequests();
/** The requests of each kind on display with their responses, or why there are none. */
const answers = new Map();
const popularList = new PopularList();
const popularityCard = new PopularityCard();
const recipientsCard = new RecipientsCard((query) => loadRecipients(query));
const mapCard = new MapCard({ choose: (itemId) => chooseItem(itemId), change: updateMap });

/**
 * @returns {{stored: any, refusal: string | null, similar: string[], popularity: any}} the stored
 *   item or why there is none, the ids of similar items, and the settled popularity
 */
function nothingKnown() {
  return { stored: null, refusal: null, similar: [], popularity: null };
}

/** The selected version; null if none is published. */
const version = () => byId("version").value || null;

/** @throws {Problem} if no version is published */
function requireVersion() {
  const chosen = version();
  if (chosen !== null) return chosen;
  throw new Problem("No model is published yet; publish one with: kairos publish", { status: 404 });
}

/**
 * Sends requests of a kind, and shows their responses.
 *
 * @param {string} kind
 * @param {() => ApiRequest[]} toRequests
 * @param {(settled: {response: any[] | null, refusal: any}) => any} show
 * @param {(requests: ApiRequest[], signal: AbortSignal) => Promise<any[]>} [send]
 */
function load(kind, toRequests, show, send = sendAll) {
  answers.delete(kind);
  /** @type {ApiRequest[]} */
  let sent = [];
  const again = () => load(kind, toRequests, show, send);
  const settled = (signal) =>
    settle(() => {
      sent = toRequests();
      return send(sent, signal);
    }, again);
  return requests.replace(kind, settled, (outcome) => {
    answers.set(kind, { ...outcome, requests: sent });
    return show(outcome);
  });
}

const sendAll = (sent, signal) => Promise.all(sent.map((request) => sendRequest(request, signal)));

/**
 * Opens an item, with an entry in the browser's history.
 *
 * @param {string | null} itemId null to return to the most popular items
 * @param {any} [hint] what is known of the item already, such as its title
 */
function chooseItem(itemId, hint = null) {
  if (itemId === state.item) return;
  state = { ...state, item: itemId };
  LINK.save(state, { isNavigation: true });
  mapCard.highlight("");
  openItem(hint);
}

/**
 * Shows the item of the state, and requests what is not known of it.
 *
 * @param {any} [hint]
 */
function openItem(hint = null) {
  item = nothingKnown();
  const isChosen = state.item !== null;
  byId("popular").hidden = isChosen;
  byId("item").hidden = byId("popularity").hidden = byId("recipients").hidden = !isChosen;
  clearRecipients();
  requests.cancel("recipients");
  showNoSimilar("");
  popularityCard.showMissing("");
  if (!isChosen) {
    for (const kind of ["item", "similar", "popularity"]) requests.cancel(kind);
    drawMap();
    return;
  }
  loadItem(hint);
  loadSimilar();
  loadPopularity();
}

/** @param {any} [hint] */
function loadItem(hint = null) {
  item = { ...item, refusal: null };
  showItem(hint);
  load(
    "item",
    () => [itemRequest(state.item)],
    ({ response, refusal }) => {
      item = { ...item, stored: response?.[0] ?? null, refusal };
      showItem(hint);
      announce(byId("item-heading").textContent);
    },
  );
}

/**
 * Shows what is known of the item.
 *
 * @param {any} [hint]
 */
function showItem(hint = null) {
  const mapped = mapCard.find(state.item);
  const title = item.stored?.title ?? mapped?.title ?? hint?.title;
  render(itemName(title, state.item), byId("item-heading"));
  showFacts({ itemId: state.item, ...item, mapped, version: version() });
}

function loadSimilar() {
  load(
    "similar",
    () => [similarRequest(state.item, { n: SIMILAR, version: requireVersion() })],
    async ({ response, refusal }) => {
      if (response === null) showNoSimilar(refusal);
      else showSimilar(response[0]);
      item = { ...item, similar: response?.[0].items.map((one) => one.item_id) ?? [] };
      await drawMap();
    },
  );
}

function loadPopularity() {
  load(
    "popularity",
    () => [popularityRequest(state.item, state.step)],
    (popularity) => {
      item = { ...item, popularity };
      return drawPopularity();
    },
  );
}

async function drawPopularity() {
  if (item.popularity === null) return;
  const { response, refusal } = item.popularity;
  const dataWindow = models.find((model) => model.version === version())?.data_window ?? null;
  if (response === null) popularityCard.showMissing(refusal);
  else await popularityCard.show(response[0], dataWindow, version());
}

function loadRecipients(query) {
  load(
    "recipients",
    () => [recipientsRequest(state.item, { ...query, model_version: version() })],
    ({ response, refusal }) => {
      if (response === null) recipientsCard.showMissing(refusal);
      else recipientsCard.show(response[0]);
      announce(byId("recipients-note").textContent);
    },
  );
}

function clearRecipients() {
  recipientsCard.clear();
  answers.delete("recipients");
}

function loadMap() {
  load(
    "map",
    () => [mapRequest(requireVersion(), state.items), modelRequest(requireVersion())],
    async ({ response, refusal }) => {
      if (response === null) mapCard.showMissing(refusal);
      else mapCard.setMap(response[0], response[1]);
      popularList.show(mapCard.items, { hasFailed: refusal !== null && typeof refusal !== "string" });
      if (state.item !== null) showItem();
      await drawMap();
    },
    ([map, model], signal) => Promise.all([sendRequest(map, signal), readVectors(model, signal)]),
  );
}

/** The item vectors of a version: how many, and their dimensions; null if not known. */
async function readVectors(request, signal) {
  try {
    const { items, encoder } = (await sendRequest(request, signal)).manifest.recommender;
    clearProblem(MANIFEST);
    return { count: items, dimensions: encoder.dim ?? null };
  } catch (error) {
    showProblem(error, { part: MANIFEST, retry: loadMap });
    return null;
  }
}

const drawMap = () => mapCard.draw(state, state.item, item.similar);

/** Redraws a chart as a request of its own kind: the page is busy until it is drawn. */
const redraw = (draw) => requests.replace("drawing", draw, () => {});

/** Applies a choice of categories. */
function updateMap(update) {
  state = { ...state, ...update };
  LINK.save(state);
  redraw(drawMap);
}

/** Applies another version or another size of the map. */
function reloadMap(update) {
  state = { ...state, ...update };
  LINK.save(state);
  loadMap();
}

function showControls() {
  fillVersionSelect(byId("version"), models, state.model_version);
  const missing = describeMissing(models, { version: state.model_version });
  byId("version-note").hidden = missing === "";
  byId("version-note").textContent = missing;
  const sizes = [...new Set([...MAP_SIZES, state.items])].sort((one, other) => one - other);
  render(
    sizes.map((size) => html`<option value=${size}>${formatCount(size)}</option>`),
    byId("map-items"),
  );
  byId("map-items").value = state.items;
  stepRadio(state.step).checked = true;
}

/** @returns {HTMLInputElement} */
const stepRadio = (step) =>
  /** @type {any} */ (document.querySelector(`input[name="step"][value="${step}"]`));

function listen() {
  new ItemSearch(byId("item-search"), { choose: (found) => chooseItem(found.item_id, found) });
  for (const id of ["item-search", "popular-filter"]) {
    byId(id).addEventListener("input", ({ target }) => mapCard.highlight(target.value));
  }
  onItemClick(byId("view"), (itemId) => {
    chooseItem(itemId);
    byId("item-heading").focus();
  });
  byId("close-item").addEventListener("click", () => {
    chooseItem(null);
    byId("popular-heading").focus();
  });
  byId("version").addEventListener("change", ({ target }) => {
    reloadMap({ model_version: target.value });
    showControls();
    if (state.item === null) return;
    clearRecipients();
    loadSimilar();
    redraw(drawPopularity);
  });
  byId("map-items").addEventListener("change", ({ target }) => reloadMap({ items: Number(target.value) }));
  for (const step of ["day", "week", "month"]) {
    stepRadio(step).addEventListener("change", () => {
      state = { ...state, step };
      LINK.save(state);
      if (state.item !== null) loadPopularity();
    });
  }
  // Back, forward, and an edited fragment; replaceState does not raise it.
  window.addEventListener("popstate", () => {
    const before = [version(), state.items];
    state = LINK.read();
    showControls();
    openItem();
    if (version() !== before[0] || state.items !== before[1]) loadMap();
    else redraw(drawMap);
  });
}

async function start() {
  showBanner();
  listen();
  offerTakeAway({
    answers,
    cards: { popular: popularList, map: mapCard, popularity: popularityCard },
    chosen: () => state.item,
  });
  await requests.replace("models", showServedVersion, (published) => {
    models = published;
    showControls();
    openItem();
    loadMap();
  });
}

start();

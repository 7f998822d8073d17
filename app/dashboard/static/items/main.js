// @ts-check
/** The Items page: an item, its similar items, its popularity, and the map of all items. */

import { describeModel } from "../shell/api.js";
import { formatCount } from "../shell/format.js";
import { byId, html, itemName, render } from "../shell/html.js";
import { announce, clearProblem, showBanner, showProblem, showServedVersion } from "../shell/page.js";
import { ItemSearch } from "../widgets/item_search.js";
import { describeMissing, fillVersionSelect } from "../widgets/versions.js";
import {
  ConcurrentRequests,
  LINK,
  MAP_SIZES,
  readItem,
  readMap,
  readPopularity,
  readRecipients,
  readSimilarItems,
  settle,
} from "./data.js";
import { onItemClick, PopularList, showFacts, showNoSimilar, showSimilar } from "./item_card.js";
import { MapCard } from "./map_card.js";
import { PopularityCard } from "./popularity_card.js";
import { RecipientsCard } from "./recipients_card.js";

const SIMILAR = 10;
/** What says how many item vectors there are, and of how many dimensions. */
const MANIFEST = "Version's manifest";
const NO_MODEL = { response: null, refusal: "No model is published yet; publish one with: kairos publish" };

/** @type {Record<string, any>} */
let state = LINK.read();
/** The published versions. */
let models = [];
/** What is known of the chosen item. */
let item = nothingKnown();

const requests = new ConcurrentRequests();
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
  recipientsCard.clear();
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
  requests.replace(
    "item",
    (signal) => settle(readItem(state.item, signal), () => loadItem(hint)),
    ({ response, refusal }) => {
      item = { ...item, stored: response, refusal };
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
  const requested = version();
  requests.replace(
    "similar",
    (signal) =>
      requested === null
        ? NO_MODEL
        : settle(readSimilarItems(state.item, { n: SIMILAR, version: requested }, signal), loadSimilar),
    async ({ response, refusal }) => {
      if (response === null) showNoSimilar(refusal);
      else showSimilar(response);
      item = { ...item, similar: response?.items.map((one) => one.item_id) ?? [] };
      await drawMap();
    },
  );
}

function loadPopularity() {
  requests.replace(
    "popularity",
    (signal) => settle(readPopularity(state.item, state.step, signal), loadPopularity),
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
  else await popularityCard.show(response, dataWindow, version());
}

function loadRecipients(query) {
  requests.replace(
    "recipients",
    (signal) =>
      settle(readRecipients(state.item, { ...query, model_version: version() }, signal), () =>
        loadRecipients(query),
      ),
    ({ response, refusal }) => {
      if (response === null) recipientsCard.showMissing(refusal);
      else recipientsCard.show(response);
      announce(byId("recipients-note").textContent);
    },
  );
}

function loadMap() {
  const requested = version();
  requests.replace(
    "map",
    (signal) =>
      requested === null
        ? NO_MODEL
        : settle(readMapWithVectors(requested, signal), loadMap),
    async ({ response, refusal }) => {
      if (response === null) mapCard.showMissing(refusal);
      else mapCard.setMap(response.map, response.vectors);
      popularList.show(mapCard.items, { hasFailed: refusal !== null && typeof refusal !== "string" });
      if (state.item !== null) showItem();
      await drawMap();
    },
  );
}

/** The map of a version, and its item vectors: how many, and their dimensions; null if not known. */
async function readMapWithVectors(requested, signal) {
  const described = describeModel(requested, signal).then(
    ({ manifest }) => {
      clearProblem(MANIFEST);
      const { items, encoder } = manifest.recommender;
      return { count: items, dimensions: encoder.dim ?? null };
    },
    (error) => {
      showProblem(error, { part: MANIFEST, retry: loadMap });
      return null;
    },
  );
  return { map: await readMap(requested, state.items, signal), vectors: await described };
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
    recipientsCard.clear();
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
  await requests.replace("models", showServedVersion, (published) => {
    models = published;
    showControls();
    openItem();
    loadMap();
  });
}

start();

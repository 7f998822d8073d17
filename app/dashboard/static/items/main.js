/** The page: items as a model sees them. */

import { describeModel } from "../shell/api.js";
import { formatCount } from "../shell/format.js";
import { byId, element, itemName, render } from "../shell/html.js";
import { announce, showBanner, showServedVersion } from "../shell/page.js";
import { ItemSearch } from "../widgets/item_search.js";
import { fillVersionSelect } from "../widgets/versions.js";
import { readItem, readMap, readPopularity, similarItems } from "./ask.js";
import { showFacts } from "./facts.js";
import { followLinks } from "./item_link.js";
import { ItemMap } from "./item_map.js";
import { PopularList } from "./popular_list.js";
import { PopularityPlot } from "./popularity_plot.js";
import { Questions, told } from "./questions.js";
import { showNoSimilar, showSimilar } from "./similar_list.js";
import { LINK, MAP_SIZES } from "./state.js";

const SIMILAR = 10;
const NO_MODEL = "No model is published yet; publish one with: kairos publish";

let state = LINK.read();
let models = [];
/** What was said of the chosen item so far. */
let item = nothingSaid();

const questions = new Questions();
const popular = new PopularList();
const popularity = new PopularityPlot();
const map = new ItemMap({ choose: (itemId) => choose(itemId), change: redraw });

function nothingSaid() {
  return { stored: null, refusal: null, similar: [], popularity: null };
}

/** The version that is looked at; null where none is published. */
const version = () => byId("version").value || null;

/** Move on to an item, so that "back" returns from it; null: to none. */
function choose(itemId, hint = null) {
  if (itemId === state.item) return;
  state = { ...state, item: itemId };
  LINK.save(state, { isNavigation: true });
  openItem(hint);
}

/** Show the state's item, of which `hint` tells what is known already. */
function openItem(hint = null) {
  item = nothingSaid();
  const isChosen = state.item !== null;
  byId("popular").hidden = isChosen;
  byId("item").hidden = byId("popularity").hidden = !isChosen;
  if (!isChosen) {
    for (const kind of ["item", "similar", "popularity"]) questions.drop(kind);
    drawMap();
    return;
  }
  showItem(hint);
  questions.renew(
    "item",
    (signal) => told(readItem(state.item, signal)),
    ({ answer, refusal }) => {
      item = { ...item, stored: answer, refusal };
      showItem(hint);
      announce(byId("item-heading").textContent);
    },
  );
  askSimilar();
  askPopularity();
}

/** Show what the item is, by what was said so far. */
function showItem(hint = null) {
  const mapped = map.find(state.item);
  const title = item.stored?.title ?? mapped?.title ?? hint?.title;
  render(itemName(title, state.item), byId("item-heading"));
  showFacts({ itemId: state.item, ...item, mapped, version: version() });
}

function askSimilar() {
  const asked = version();
  questions.renew(
    "similar",
    async (signal) =>
      asked === null
        ? { answer: null, refusal: NO_MODEL }
        : told(similarItems(state.item, { n: SIMILAR, version: asked }, signal)),
    async ({ answer, refusal }) => {
      if (answer === null) showNoSimilar(refusal);
      else showSimilar(answer);
      item = { ...item, similar: answer?.items.map((one) => one.item_id) ?? [] };
      await drawMap();
    },
  );
}

function askPopularity() {
  questions.renew(
    "popularity",
    (signal) => told(readPopularity(state.item, state.step, signal)),
    (said) => {
      item = { ...item, popularity: said };
      return drawPopularity();
    },
  );
}

async function drawPopularity() {
  if (item.popularity === null) return;
  const { answer, refusal } = item.popularity;
  const window = models.find((model) => model.version === version())?.data_window ?? null;
  if (answer === null) popularity.showNone(refusal);
  else await popularity.show(answer, window, version());
}

function askMap() {
  const asked = version();
  questions.renew(
    "map",
    async (signal) =>
      asked === null
        ? { answer: null, refusal: NO_MODEL }
        : told(Promise.all([readMap(asked, state.items, signal), describeModel(asked, signal)])),
    async ({ answer, refusal }) => {
      if (answer === null) map.showNone(refusal);
      else map.take(answer[0], answer[1].manifest.recommender.encoder.dim ?? null);
      popular.show(map.items);
      if (state.item !== null) showItem();
      await drawMap();
    },
  );
}

const drawMap = () => map.draw(state, state.item, item.similar);

/** Take over a choice of categories. */
function redraw(update) {
  state = { ...state, ...update };
  LINK.save(state);
  questions.renew("drawing", drawMap, () => {});
}

/** Take over another version or another size of the map. */
function remap(update) {
  state = { ...state, ...update };
  LINK.save(state);
  askMap();
}

/** Let the controls say what the state says. */
function showControls() {
  const shown = fillVersionSelect(byId("version"), models, state.model_version);
  const isOther = state.model_version !== null && state.model_version !== shown;
  byId("version-note").hidden = !isOther;
  byId("version-note").textContent = isOther
    ? `The version ${state.model_version} is not published, or cannot be read; this is another.`
    : "";
  const sizes = [...new Set([...MAP_SIZES, state.items])].sort((one, other) => one - other);
  byId("map-items").replaceChildren(
    ...sizes.map((size) => element("option", { value: String(size) }, formatCount(size))),
  );
  byId("map-items").value = state.items;
  document.querySelector(`input[name="step"][value="${state.step}"]`).checked = true;
}

function listen() {
  new ItemSearch(byId("item-search"), { choose: (found) => choose(found.item_id, found) });
  followLinks(byId("view"), (itemId) => {
    choose(itemId);
    byId("item-heading").focus();
  });
  byId("close-item").addEventListener("click", () => {
    choose(null);
    byId("popular-heading").focus();
  });
  byId("version").addEventListener("change", ({ target }) => {
    remap({ model_version: target.value });
    showControls();
    if (state.item === null) return;
    askSimilar();
    questions.renew("drawing", drawPopularity, () => {});
  });
  byId("map-items").addEventListener("change", ({ target }) => remap({ items: Number(target.value) }));
  for (const radio of document.querySelectorAll('input[name="step"]')) {
    radio.addEventListener("change", () => {
      state = { ...state, step: radio.value };
      LINK.save(state);
      if (state.item !== null) askPopularity();
    });
  }
  // Back, forward, and a fragment typed by hand; our own replaceState raises neither.
  window.addEventListener("popstate", () => {
    const before = [version(), state.items];
    state = LINK.read();
    showControls();
    openItem();
    if (version() !== before[0] || state.items !== before[1]) askMap();
    else questions.renew("drawing", drawMap, () => {});
  });
}

async function start() {
  showBanner();
  listen();
  await questions.renew("models", showServedVersion, (answer) => {
    models = answer;
    showControls();
    openItem();
    askMap();
  });
}

start();

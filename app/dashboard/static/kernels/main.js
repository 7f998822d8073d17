// @ts-check
/** The Kernels page: the kernel of each time encoding, and the intensities of a user. */

import { byId, html, render } from "../shell/html.js";
import { clearProblem, showBanner, showBusy, showProblem, showStale } from "../shell/page.js";
import { choice, Permalink, text } from "../shell/permalink.js";
import { VersionPair } from "../widgets/versions.js";
import { hasIntensities, IntensityCard } from "./intensity_card.js";
import { KernelCard } from "./kernel_card.js";
import { computePsiExtent, computeSpectrumExtent, intervalScale } from "./kernel_charts.js";

/** @typedef {import("./kernel_charts.js").Kernel} Kernel */

const LINK = new Permalink({
  /** Null for the version that serves. */
  version: text(),
  compare: text(),
  /** The time encoding of a model with several; null for the first. */
  place: text(),
  scale: choice("log", "linear"),
  /** The length of the linear axis. */
  window: choice("week", "day", "60d", "year"),
  /** The user whose intensities are shown; null for the first user. */
  user: text(),
});

/** Columns enough to find the range of psi, whatever the width of the charts. */
const MEASURED_COLUMNS = 800;
const MOST_SEARCHED = 10;

/** @type {any} */
let state = LINK.read();
/** @type {any[]} the descriptions of the version and the compared one; null for none */
let descriptions = [null, null];
/** @type {string | null} */
let firstUser = null;
/** How many times kernels are being drawn. */
let drawings = 0;

const versions = new VersionPair((chosen) => load(chosen, { isNavigation: true }));
const kernelCards = ["first", "second"].map((name) => new KernelCard(byId(`${name}-kernel`), name));
const intensityCard = new IntensityCard({
  choose: (user) => update({ user }, { isNavigation: true }),
  onDrawn: () => showIdle(),
});

/** Applies a choice of versions: requests their descriptions, and shows them. */
async function load(change, { isNavigation = false } = {}) {
  state = { ...state, ...change };
  LINK.save(state, { isNavigation });
  showBusy(true);
  showStale();
  try {
    const responses = await versions.describe(versions.show(state));
    if (responses === null) return;
    descriptions = responses;
    clearProblem();
    show();
  } catch (error) {
    hide();
    showProblem(error, { retry: () => load({}) });
  }
}

/** Hides the kernels and intensities of the versions that were chosen before. */
function hide() {
  descriptions = [null, null];
  for (const id of ["kernels", "intensities", "no-intensities", "encoding"]) byId(id).hidden = true;
  intensityCard.clear();
}

/** Applies a change that needs no other description. */
function update(change, { isNavigation = false } = {}) {
  state = { ...state, ...change };
  LINK.save(state, { isNavigation });
  show();
}

async function show() {
  showBusy(true);
  showControls();
  drawings += 1;
  try {
    showIntensities();
    await showKernels();
  } catch (error) {
    showProblem(error);
  }
  drawings -= 1;
  showIdle();
}

function showIdle() {
  showBusy(drawings > 0 || !intensityCard.isIdle);
}

async function showKernels() {
  byId("no-version").hidden = descriptions[0] !== null;
  byId("kernels").hidden = descriptions[0] === null;
  const chosen = descriptions.map(chooseKernel);
  const kernels = chosen.flatMap((kernel) => kernel ?? []);
  const longest = Math.max(...kernels.map(({ interval_days: days }) => days[days.length - 1]));
  const extent = {
    longest,
    psi:
      kernels.length > 0
        ? computePsiExtent(kernels, intervalScale(state, longest, MEASURED_COLUMNS))
        : [0, 1],
    spectrum: computeSpectrumExtent(kernels),
  };
  await Promise.all(
    kernelCards.map((card, index) => {
      const description = descriptions[index];
      card.isHidden = description === null;
      if (description === null) return null;
      return card.show({ description, kernel: chosen[index], state, extent });
    }),
  );
}

/**
 * The kernel of the chosen time encoding, or of the first one if the model does not have that.
 *
 * @returns {Kernel | null}
 */
function chooseKernel(description) {
  const kernels = description?.kernels ?? [];
  return kernels.find((kernel) => kernel.place === state.place) ?? kernels[0] ?? null;
}

function showIntensities() {
  const [description] = descriptions;
  const isShown = hasIntensities(description);
  byId("intensities").hidden = !isShown;
  byId("no-intensities").hidden = isShown || description === null;
  const user = state.user ?? firstUser;
  if (isShown && user !== null) intensityCard.load(user, description.version);
  else intensityCard.clear();
  if (isShown && user === null) intensityCard.showNoUser();
}

function showControls() {
  scaleRadio(state.scale).checked = true;
  byId("window").value = state.window;
  byId("window").disabled = state.scale === "log";
  const places = (descriptions[0]?.kernels ?? []).map((kernel) => kernel.place);
  byId("encoding").hidden = places.length < 2;
  const select = byId("place");
  render(
    places.map((place) => html`<option value=${place}>${place}</option>`),
    select,
  );
  select.value = places.includes(state.place) ? state.place : (places[0] ?? "");
}

/** @returns {HTMLInputElement} */
const scaleRadio = (scale) =>
  /** @type {any} */ (document.querySelector(`input[name="scale"][value="${scale}"]`));

function listen() {
  for (const scale of ["log", "linear"]) {
    scaleRadio(scale).addEventListener("change", () => update({ scale }));
  }
  byId("window").addEventListener("change", ({ target }) => update({ window: target.value }));
  byId("place").addEventListener("change", ({ target }) => update({ place: target.value }));
  byId("find-modulated").addEventListener("click", ({ target }) => findModulated(target));
  window.addEventListener("popstate", () => {
    state = LINK.read();
    load({});
  });
}

/** Searches the newest versions for those with intensities, and offers them. */
async function findModulated(button) {
  const result = byId("modulated");
  button.disabled = true;
  render("Searching…", result);
  try {
    const newest = versions.models.filter((model) => model.refused === null).slice(0, MOST_SEARCHED);
    const found = [];
    // One at a time: the service opens each bundle to describe it.
    for (const { version } of newest) {
      const [description] = (await versions.describe({ version, compare: null })) ?? [];
      if (hasIntensities(description)) found.push(version);
    }
    const offers = found.map(
      (version) => html`<button type="button" class="plain"
        @click=${() => load({ version }, { isNavigation: true })}>${version}</button>`,
    );
    render(found.length > 0 ? offers : `None of the ${newest.length} newest has.`, result);
  } catch (error) {
    render(error.message, result);
  }
  button.disabled = false;
}

async function listUsers() {
  firstUser = await intensityCard.open(() => listUsers().then(show));
}

async function open() {
  try {
    await Promise.all([listUsers(), versions.open()]);
    await load({});
  } catch (error) {
    hide();
    showProblem(error, { retry: open });
  }
}

function start() {
  showBanner();
  showControls();
  listen();
  open();
}

start();

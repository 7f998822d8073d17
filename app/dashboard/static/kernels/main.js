/** The page: what a model makes of time. */

import { byId, element } from "../shell/html.js";
import { clearProblem, showBanner, showBusy, showProblem, showStale } from "../shell/page.js";
import { VersionPair } from "../widgets/versions.js";
import { hasIntensities } from "./intensities.js";
import { IntensityCard } from "./intensity_card.js";
import { KernelCard, psiExtent } from "./kernel_card.js";
import { spectrumExtent } from "./spectrum_figure.js";
import { LINK } from "./state.js";

/** Enough columns to find how high psi reaches. */
const MEASURED_PIXELS = 800;
const MOST_LOOKED_AT = 10;

let state = LINK.read();
/** The descriptions of the version and the one it is compared with; null for none. */
let described = [null, null];
let firstUser = null;

const versions = new VersionPair((chosen) => load(chosen, { isNavigation: true }));
const cards = ["first", "second"].map((name) => new KernelCard(byId(`${name}-kernel`), name));
const intensities = new IntensityCard({
  choose: (user) => redisplay({ user }, { isNavigation: true }),
  settled: () => settle(),
});
/** Pictures of kernels that are being drawn. */
let drawing = 0;

/** Take over a choice of versions, and ask for them. */
async function load(update, { isNavigation = false } = {}) {
  state = { ...state, ...update };
  LINK.save(state, { isNavigation });
  showBusy(true);
  showStale();
  try {
    const answers = await versions.describe(versions.show(state));
    if (answers === null) return;
    described = answers;
    clearProblem();
    show();
  } catch (error) {
    showProblem(error);
  }
}

/** Take over a change of the display alone. */
function redisplay(update, { isNavigation = false } = {}) {
  state = { ...state, ...update };
  LINK.save(state, { isNavigation });
  show();
}

async function show() {
  showBusy(true);
  showControls();
  drawing += 1;
  try {
    showIntensities();
    await showKernels();
  } catch (error) {
    showProblem(error);
  }
  drawing -= 1;
  settle();
}

function settle() {
  showBusy(drawing > 0 || !intensities.isIdle);
}

async function showKernels() {
  byId("no-version").hidden = described[0] !== null;
  byId("kernels").hidden = described[0] === null;
  const kernels = described.map(kernelOf);
  const there = kernels.filter((kernel) => kernel !== null);
  const longest = Math.max(...there.map((kernel) => kernel.interval_days.at(-1)));
  const extent = {
    longest,
    psi: there.length > 0 ? psiExtent(there, state, longest, MEASURED_PIXELS) : [0, 1],
    spectrum: spectrumExtent(there),
  };
  const drawings = cards.map((card, number) => {
    const description = described[number];
    card.isHidden = description === null;
    if (description === null) return null;
    return card.show({ description, kernel: kernels[number], state, extent });
  });
  await Promise.all(drawings);
}

/** The kernel of the chosen time encoding, of a model without it that of its first. */
function kernelOf(description) {
  const kernels = description?.kernels ?? [];
  return kernels.find((kernel) => kernel.place === state.place) ?? kernels[0] ?? null;
}

function showIntensities() {
  const [description] = described;
  const isThere = hasIntensities(description);
  byId("intensities").hidden = !isThere;
  byId("no-intensities").hidden = isThere || description === null;
  const user = state.user ?? firstUser;
  if (isThere && user !== null) intensities.ask(user, description.version);
  else intensities.drop();
  if (isThere && user === null) {
    byId("intensity-note").textContent = "No user has events yet; send some to /v1/events.";
  }
}

function showControls() {
  document.querySelector(`input[name="scale"][value="${state.scale}"]`).checked = true;
  const select = byId("window");
  select.value = state.window;
  select.disabled = state.scale === "log";
  const places = (described[0]?.kernels ?? []).map((kernel) => kernel.place);
  byId("encoding").hidden = places.length < 2;
  byId("place").replaceChildren(
    ...places.map((place) => element("option", { value: place }, place)),
  );
  byId("place").value = places.includes(state.place) ? state.place : (places[0] ?? "");
}

function listen() {
  for (const radio of document.querySelectorAll('input[name="scale"]')) {
    radio.addEventListener("change", () => redisplay({ scale: radio.value }));
  }
  byId("window").addEventListener("change", ({ target }) => redisplay({ window: target.value }));
  byId("place").addEventListener("change", ({ target }) => redisplay({ place: target.value }));
  byId("find-modulated").addEventListener("click", ({ target }) => findModulated(target));
  window.addEventListener("popstate", () => {
    state = LINK.read();
    load({});
  });
}

/** Look through the newest versions for those that tell intensities, and offer them. */
async function findModulated(button) {
  const place = byId("modulated");
  button.disabled = true;
  place.textContent = "Looking…";
  try {
    const newest = versions.models.filter((model) => model.refused === null).slice(0, MOST_LOOKED_AT);
    const found = [];
    // One after the other: the service opens each bundle to describe it.
    for (const { version } of newest) {
      const [description] = await versions.describe({ version, compare: null });
      if (hasIntensities(description)) found.push(version);
    }
    const offers = found.map((version) => {
      const offer = element("button", { type: "button", class: "plain" }, version);
      offer.addEventListener("click", () => load({ version }, { isNavigation: true }));
      return offer;
    });
    const none = `None of the ${newest.length} newest does.`;
    place.replaceChildren(...(found.length > 0 ? offers : [none]));
  } catch (error) {
    place.textContent = error.message;
  }
  button.disabled = false;
}

async function start() {
  showBanner();
  showControls();
  listen();
  try {
    const [first] = await Promise.all([intensities.open(), versions.open()]);
    firstUser = first;
    await load({});
  } catch (error) {
    showProblem(error);
  }
}

start();

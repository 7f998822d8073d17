/** The head of every page: where one can go, which model answers, and the key. */

import { listModels } from "./api.js";
import { byId, element } from "./dom.js";
import { keyControl } from "./key.js";

const VIEWS = [
  ["index.html", "User"],
  ["what_if.html", "What if"],
  ["population.html", "Population"],
  ["kernels.html", "Kernels"],
  ["items.html", "Items"],
  ["models.html", "Models"],
  ["health.html", "Health"],
];

/** Fill the banner; the file of this page is marked in it. */
export function showBanner() {
  const here = location.pathname.split("/").at(-1) || "index.html";
  const links = VIEWS.map(([file, name]) =>
    element(
      "li",
      {},
      element("a", { href: file, "aria-current": file === here ? "page" : null }, name),
    ),
  );
  byId("banner").replaceChildren(
    skipToView(),
    element("p", { class: "brand" }, element("strong", {}, "Kairos"), " attention over time"),
    element("nav", { "aria-label": "Views" }, element("ul", {}, ...links)),
    element(
      "p",
      { class: "served" },
      element("span", {}, "model ", element("code", { id: "model-version" }, "…")),
      keyControl(),
    ),
  );
}

/** For the keyboard; no link, as the fragment says what the page shows. */
function skipToView() {
  const button = element("button", { type: "button", class: "skip" }, "Skip to the view");
  button.addEventListener("click", () => document.querySelector("main").focus());
  return button;
}

/** Say which version answered. */
export function showVersion(version) {
  byId("model-version").textContent = version;
}

/** Ask which version serves, and say so; answers the published versions, newest first. */
export async function showServedVersion(signal) {
  const models = await listModels(signal);
  showVersion(models.find((model) => model.is_serving)?.version ?? "none");
  return models;
}

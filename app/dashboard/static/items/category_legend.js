/** What the colours and symbols of the map mean, and which of them are shown. */

import { formatCount } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { SYMBOL_CHARACTERS } from "../widgets/series.js";
import { isShown } from "./categories.js";

export class CategoryLegend {
  #place = byId("categories");
  #change;
  #groups = [];

  /** `change(update)` is told the fields of the state that the reader's choice changes. */
  constructor(change) {
    this.#change = change;
    this.#place.addEventListener("change", () => this.#choose((box) => box.checked));
  }

  /** Offer groups as `groupsOf` gives them, ticked as the state says. */
  show(groups, state) {
    this.#groups = groups;
    const all = this.#button("all", () => true);
    const none = this.#button("none", () => false);
    this.#place.replaceChildren(
      element("legend", {}, "Colour and symbol: the first category of an item that is ticked"),
      element("div", { class: "steps" }, all, none),
      element("div", { class: "entries" }, ...groups.map((group) => entry(group, isShown(group, state)))),
    );
  }

  #button(label, isTicked) {
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      for (const box of this.#boxes) box.checked = isTicked(box);
      this.#choose(isTicked);
    });
    return button;
  }

  get #boxes() {
    return [...this.#place.querySelectorAll("input")];
  }

  #choose(isTicked) {
    const ticked = this.#groups.filter((_, place) => isTicked(this.#boxes[place]));
    const has = (kind) => ticked.some((group) => group.kind === kind);
    const names = ticked.filter((group) => group.kind === "category").map((group) => group.name);
    const all = this.#groups.filter((group) => group.kind === "category").length;
    const lacks = (kind) => !this.#groups.some((group) => group.kind === kind);
    this.#change({
      categories: names.length === all ? null : names,
      other: has("other") || lacks("other"),
      none: has("none") || lacks("none"),
    });
  }
}

function entry({ name, style, count: items, kind }, isTicked) {
  const letter = element("span", { class: "letter", "aria-hidden": "true" }, SYMBOL_CHARACTERS[style.symbol]);
  letter.style.setProperty("--letter", `var(${style.token})`);
  return element(
    "label",
    {},
    element("input", { type: "checkbox", checked: isTicked }),
    letter,
    element("span", { class: kind === "category" ? null : "note" }, name),
    element("span", { class: "note" }, formatCount(items)),
  );
}

/** Styles of curves (colour and symbol), and the legend that chooses which are drawn. */

import { cssColor, seriesToken } from "../shell/chart.js";
import { element } from "../shell/html.js";

// Seven shapes and eight colours share no divisor: the first 56 names all look different.
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x"];

/** The symbols of plotly.js as letters, for legends. */
export const SYMBOL_CHARACTERS = {
  circle: "●",
  square: "■",
  diamond: "◆",
  "triangle-up": "▲",
  "triangle-down": "▼",
  cross: "✚",
  x: "✖",
  "square-open": "□",
  "circle-open": "○",
};

/**
 * A style per name, the same wherever the same list of names is drawn: `{token, symbol}`, the custom
 * property of its colour and the name of its shape, as plotly.js knows it.
 */
export const seriesStyles = (names) =>
  new Map(
    names.map((name, place) => [
      name,
      { token: seriesToken(place), symbol: SYMBOLS[place % SYMBOLS.length] },
    ]),
  );

/** The colour of a style, as it is now. */
export const styleColor = (style) => cssColor(style.token);

const SVG = "http://www.w3.org/2000/svg";
/** The shapes of plotly.js's symbols around (18, 7). */
const SHAPES = {
  circle: "M22 7a4 4 0 1 1-8 0a4 4 0 1 1 8 0Z",
  square: "M14.5 3.5h7v7h-7Z",
  diamond: "M18 2l5 5-5 5-5-5Z",
  "triangle-up": "M18 2l4.8 8.2h-9.6Z",
  "triangle-down": "M18 12l4.8-8.2h-9.6Z",
  cross: "M16.4 2.5h3.2v2.9h2.9v3.2h-2.9v2.9h-3.2v-2.9h-2.9v-3.2h2.9Z",
  x: "M15.3 2.2l2.7 2.6 2.7-2.6 2.1 2.1-2.6 2.7 2.6 2.7-2.1 2.1-2.7-2.6-2.7 2.6-2.1-2.1 2.6-2.7-2.6-2.7Z",
};
const SEARCHED_FROM = 9;

export class SeriesLegend {
  #most;
  #choose;
  #list = element("ul", { class: "series" });
  #search;
  #note = element("p", { class: "note" });
  #chosen = new Set();
  #listed = null;

  /**
   * `place` is filled. `choose(keys)` is called with the keys that are chosen, in the order they are
   * listed, whenever the reader changes them; at most `most` at once. `noun` is what they are, in the
   * plural.
   */
  constructor(place, { choose, noun, most = 8 }) {
    this.#most = most;
    this.#choose = choose;
    const search = element("input", { type: "search", autocomplete: "off", spellcheck: false });
    search.addEventListener("input", () => this.#narrow(search.value));
    this.#search = element("label", { class: "series-search note" }, `Find among the ${noun} `, search);
    this.#list.addEventListener("change", () => this.#changed());
    place.replaceChildren(this.#search, this.#list, this.#note);
  }

  /**
   * List curves, `{key, label, note, style}` with a style of `seriesStyles`, and check those
   * in `chosen`.
   */
  show(curves, chosen) {
    this.#chosen = new Set(chosen);
    const listed = JSON.stringify(curves);
    // Boxes that stay the same stay in place: the reader may be at one of them, or be searching.
    if (listed !== this.#listed) this.#fill(curves);
    this.#listed = listed;
    for (const box of this.#boxes) box.checked = this.#chosen.has(box.value);
    this.#limit();
  }

  get #boxes() {
    return [...this.#list.querySelectorAll("input")];
  }

  #fill(curves) {
    this.#list.replaceChildren(...curves.map((curve) => this.#row(curve)));
    this.#search.hidden = curves.length < SEARCHED_FROM;
    this.#search.querySelector("input").value = "";
  }

  #row({ key, label, note, style }) {
    const box = element("input", { type: "checkbox", value: key });
    const name = element("span", { class: "title" }, label);
    const about = note ? element("span", { class: "note" }, note) : null;
    return element("li", {}, element("label", {}, box, sampleOf(style), name, " ", about));
  }

  #changed() {
    this.#chosen = new Set(this.#boxes.filter((box) => box.checked).map((box) => box.value));
    this.#limit();
    this.#choose([...this.#chosen]);
  }

  #limit() {
    const isFull = this.#chosen.size >= this.#most;
    for (const box of this.#boxes) box.disabled = isFull && !box.checked;
    this.#note.textContent = isFull ? `At most ${this.#most} at once; uncheck one to choose another.` : "";
  }

  #narrow(text) {
    const wanted = text.toLowerCase();
    for (const row of this.#list.children) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
    }
  }
}

/** A short piece of the line, with its point. */
function sampleOf({ token, symbol }) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 36 14");
  drawing.setAttribute("aria-hidden", "true");
  drawing.style.setProperty("color", `var(${token})`);
  for (const path of ["M0 6.2h36v1.6H0Z", SHAPES[symbol]]) {
    const part = document.createElementNS(SVG, "path");
    part.setAttribute("d", path);
    part.setAttribute("fill", "currentColor");
    drawing.append(part);
  }
  return drawing;
}

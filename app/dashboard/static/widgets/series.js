// @ts-check
/** Styles of curves (colour and symbol), and the legend that chooses which curves are drawn. */

import { cssColor, seriesToken } from "../shell/chart.js";
import { html, nothing, render } from "../shell/html.js";

// Seven symbols and eight colours share no divisor: the first 56 names all look different.
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x"];

/** The symbols of plotly.js as characters, for legends. */
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
 * @typedef {object} Style
 * @property {string} token the custom property with the colour
 * @property {string} className the class that sets this colour
 * @property {string} symbol of plotly.js
 */

/**
 * A style per name, the same wherever the same list of names is drawn.
 *
 * @param {string[]} names
 * @returns {Map<string, Style>}
 */
export const seriesStyles = (names) =>
  new Map(
    names.map((name, index) => {
      const token = seriesToken(index);
      const symbol = SYMBOLS[index % SYMBOLS.length];
      return [name, { token, className: token.replace(/^--/, ""), symbol }];
    }),
  );

/** The colour of a style in the current colour scheme. */
export const styleColor = (style) => cssColor(style.token);

/** The symbols around (18, 7), as SVG paths. */
const SYMBOL_PATHS = {
  circle: "M22 7a4 4 0 1 1-8 0a4 4 0 1 1 8 0Z",
  square: "M14.5 3.5h7v7h-7Z",
  diamond: "M18 2l5 5-5 5-5-5Z",
  "triangle-up": "M18 2l4.8 8.2h-9.6Z",
  "triangle-down": "M18 12l4.8-8.2h-9.6Z",
  cross: "M16.4 2.5h3.2v2.9h2.9v3.2h-2.9v2.9h-3.2v-2.9h-2.9v-3.2h2.9Z",
  x: "M15.3 2.2l2.7 2.6 2.7-2.6 2.1 2.1-2.6 2.7 2.6 2.7-2.1 2.1-2.7-2.6-2.7 2.6-2.1-2.1 2.6-2.7-2.6-2.7Z",
};
const LINE_PATH = "M0 6.2h36v1.6H0Z";
/** From this many curves on, the legend has a search field. */
const SEARCHABLE = 9;

/** @typedef {{key: string, label: string, note?: string, style: Style}} Curve */

/** A checkbox per curve, with a sample of its line, and a search field if there are many. */
export class SeriesLegend {
  #container;
  #most;
  #noun;
  #choose;
  /** @type {Curve[]} */
  #curves = [];
  #chosen = new Set();
  #filter = "";
  /** @type {string | null} */
  #listed = null;

  /**
   * @param {HTMLElement} container emptied and filled
   * @param {object} options
   * @param {(keys: string[]) => void} options.choose called with the chosen keys in listed order
   * @param {string} options.noun what the curves are, in the plural
   * @param {number} [options.most] curves that can be chosen at once
   */
  constructor(container, { choose, noun, most = 8 }) {
    this.#container = container;
    this.#most = most;
    this.#noun = noun;
    this.#choose = choose;
    container.replaceChildren();
    this.#render();
  }

  /**
   * Lists curves and checks those in `chosen`.
   *
   * @param {Curve[]} curves
   * @param {Iterable<string>} chosen
   */
  show(curves, chosen) {
    this.#chosen = new Set(chosen);
    const listed = JSON.stringify(curves);
    if (listed !== this.#listed) this.#filter = "";
    this.#listed = listed;
    this.#curves = curves;
    this.#render();
  }

  #render() {
    const isFull = this.#chosen.size >= this.#most;
    const search = (event) => {
      this.#filter = event.target.value;
      this.#render();
    };
    render(
      html`<label class="series-search note" ?hidden=${this.#curves.length < SEARCHABLE}
          >Find among the ${this.#noun}
          <input type="search" autocomplete="off" spellcheck="false" .value=${this.#filter} @input=${search}>
        </label>
        <ul class="series">${this.#curves.map((curve) => this.#row(curve, isFull))}</ul>
        <p class="note">
          ${isFull ? `At most ${this.#most} at once; uncheck one to choose another.` : nothing}
        </p>`,
      this.#container,
    );
  }

  /**
   * @param {Curve} curve
   * @param {boolean} isFull
   */
  #row({ key, label, note, style }, isFull) {
    const isChosen = this.#chosen.has(key);
    const text = `${label} ${note ?? ""}`.toLowerCase();
    return html`<li ?hidden=${!text.includes(this.#filter.toLowerCase())}>
      <label>
        <input type="checkbox" value=${key} .checked=${isChosen} ?disabled=${isFull && !isChosen}
          @change=${(event) => this.#toggle(key, event.target.checked)}>
        ${lineSample(style)}<span class="title">${label}</span>
        ${note ? html`<span class="note">${note}</span>` : nothing}
      </label>
    </li>`;
  }

  #toggle(key, isChecked) {
    if (isChecked) this.#chosen.add(key);
    else this.#chosen.delete(key);
    this.#render();
    this.#choose(this.#curves.map((curve) => curve.key).filter((one) => this.#chosen.has(one)));
  }
}

/** A short piece of the line, with its symbol. */
const lineSample = ({ className, symbol }) =>
  html`<svg viewBox="0 0 36 14" aria-hidden="true" class=${className}>
    <path d=${LINE_PATH} fill="currentColor"></path>
    <path d=${SYMBOL_PATHS[symbol]} fill="currentColor"></path>
  </svg>`;

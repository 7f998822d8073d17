// @ts-check
/** A chart with its heading, summary and table; charts with one row per name. */

import { Chart, escapeText } from "../shell/chart.js";
import { html, nothing, render } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";

/**
 * @typedef {object} Drawing what a `ChartFigure` shows
 * @property {string} [why] why there is no chart; shown in place of it
 * @property {any} [summary]
 * @property {import("../shell/tables.js").TableContent | null} [content] the numbers behind the chart; null
 *   for no table
 * @property {number} [rows] rows of a chart that has one row per name
 * @property {(size: {width: number, height: number}) => {traces: any[], layout: any}} [build]
 * @property {(point: any) => any[] | null} [describePoint] returns the lines of the tooltip
 */

const ROW_PIXELS = 30;
const AXIS_PIXELS = 62;

/** A chart with its summary and its table, or the reason why there is none. */
export class ChartFigure {
  #root;
  #name;
  #heading;
  #container;
  #chart;
  /** @type {string | null} */
  #why = null;

  /**
   * @param {HTMLElement} root a figure
   * @param {string} name prefix of the ids of the chart, its summary and its table
   * @param {string | null} heading
   */
  constructor(root, name, heading = null) {
    this.#root = root;
    this.#name = name;
    this.#heading = heading;
    this.#render({ content: null });
    this.#container = this.#find("chart");
    this.#chart = new Chart(this.#container);
  }

  /** The chart; null where the figure says why there is none. */
  get chart() {
    return this.#why === null ? this.#chart : null;
  }

  /** Why there is no chart, or what it shows. */
  get text() {
    return this.#find("summary").textContent.trim();
  }

  /**
   * Resolves once the chart is drawn.
   *
   * @param {Drawing} drawing
   */
  async show(drawing) {
    this.#why = drawing.why ?? null;
    this.#render(drawing);
    if (drawing.content) showAsTable(this.#find("table"), drawing.content);
    if (drawing.why !== undefined || drawing.build === undefined) return;
    if (drawing.rows !== undefined) {
      const height = Math.max(drawing.rows, 2) * ROW_PIXELS + AXIS_PIXELS;
      this.#container.style.setProperty("height", `${height}px`);
    }
    await this.#chart.draw(drawing.build, drawing.describePoint);
  }

  /** @returns {any} */
  #find(/** @type {string} */ part) {
    return this.#root.querySelector(`#${this.#name}-${part}`);
  }

  #render(/** @type {Drawing} */ { why, summary, content }) {
    const name = this.#name;
    render(
      html`${
        this.#heading === null
          ? nothing
          : html`<div class="heading-row"><h3>${this.#heading}</h3><div class="take-away"></div></div>`
      }
        <div id=${`${name}-chart`} class="plot" role="img" aria-labelledby=${`${name}-summary`}
             ?hidden=${why !== undefined}></div>
        <figcaption id=${`${name}-summary`}>
          ${why === undefined ? summary : html`<span class="empty">${why}</span>`}
        </figcaption>
        <details id=${`${name}-table`} ?hidden=${!content}></details>`,
      this.#root,
    );
  }
}

/**
 * The y axis of a chart with one row per name, from the top.
 *
 * @param {string[]} names
 */
export const rowAxis = (names) => ({
  tickvals: names.map((_, row) => row),
  ticktext: names.map(escapeText),
  range: [names.length - 0.4, -0.6],
  showgrid: false,
  ticks: "outside",
  ticklen: 6,
  tickcolor: "rgba(0,0,0,0)",
});

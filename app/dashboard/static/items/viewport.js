// @ts-check
/** The part of the map in view. */

import { cssColor } from "../shell/chart.js";
import { html, render } from "../shell/html.js";

/** @typedef {import("../shell/chart.js").Chart} Chart */

const ZOOM = 1.5;
const PAN = 0.25;
const MARGIN = 0.05;
/** @type {[string, string, {zoom?: number, x?: number, y?: number}][]} */
const MOVES = [
  ["+", "Zoom in", { zoom: ZOOM }],
  ["−", "Zoom out", { zoom: 1 / ZOOM }],
  ["←", "Move left", { x: -PAN }],
  ["→", "Move right", { x: PAN }],
  ["↑", "Move up", { y: PAN }],
  ["↓", "Move down", { y: -PAN }],
];

/** The part of the plane in view: moved by wheel and drag, and by buttons for the keyboard. */
export class Viewport {
  #chart;
  #container;
  #size = { width: 1, height: 1 };
  /** @type {any[]} */
  #items = [];
  /**
   * The centre, and `unit`, how much of the plane a pixel covers; null for the whole map.
   *
   * @type {{x: number, y: number, unit: number} | null}
   */
  #view = null;
  #isMoving = false;

  /**
   * @param {Chart} chart
   * @param {any} container the element that `chart` draws into
   * @param {HTMLElement} buttons filled with the buttons
   */
  constructor(chart, container, buttons) {
    this.#chart = chart;
    this.#container = container;
    const button = (sign, name, act) =>
      html`<button type="button" aria-label=${name} title=${name} @click=${act}>${sign}</button>`;
    render(
      [
        ...MOVES.map(([sign, name, move]) => button(sign, name, () => this.#move(move))),
        button("Reset", "Reset the map", () => this.#moveTo(null)),
      ],
      buttons,
    );
    chart.on("plotly_relayout", () => this.#readView());
    chart.on("plotly_doubleclick", () => this.#moveTo(null));
  }

  /** Sets the items that the whole map covers; shows the whole map if they changed. */
  setItems(items) {
    if (items === this.#items) return;
    this.#items = items;
    this.#view = null;
  }

  /** A layout for plotly.js with axes of the same scale and these titles; `size` in pixels. */
  layout(size, titles) {
    this.#size = size;
    const [x, y] = this.#ranges();
    const axis = { fixedrange: false, showticklabels: false, showgrid: false, zeroline: false };
    // On a touch screen, dragging scrolls the page; the map has the buttons.
    const isTouch = matchMedia("(pointer: coarse)").matches;
    return {
      dragmode: isTouch ? false : "pan",
      xaxis: { ...axis, range: x, title: { text: titles[0] } },
      yaxis: {
        ...axis,
        range: y,
        showline: true,
        linecolor: cssColor("--faint"),
        scaleanchor: "x",
        title: { text: titles[1] },
      },
    };
  }

  #move({ zoom = 1, x = 0, y = 0 }) {
    const view = this.#view ?? this.#whole();
    const { width, height } = this.#size;
    const unit = view.unit / zoom;
    this.#moveTo({ x: view.x + x * width * unit, y: view.y + y * height * unit, unit });
  }

  async #moveTo(view) {
    this.#view = view;
    const [x, y] = this.#ranges();
    this.#isMoving = true;
    await this.#chart.relayout({ "xaxis.range": x, "yaxis.range": y });
    this.#isMoving = false;
  }

  /** Reads the view after the pointer moved it. */
  #readView() {
    if (this.#isMoving) return;
    const [x, y] = [this.#container.layout.xaxis.range, this.#container.layout.yaxis.range];
    this.#view = { x: (x[0] + x[1]) / 2, y: (y[0] + y[1]) / 2, unit: (x[1] - x[0]) / this.#size.width };
  }

  #ranges() {
    const { x, y, unit } = this.#view ?? this.#whole();
    const { width, height } = this.#size;
    return [
      [x - (width * unit) / 2, x + (width * unit) / 2],
      [y - (height * unit) / 2, y + (height * unit) / 2],
    ];
  }

  #whole() {
    const [left, right] = extent(this.#items.map((item) => item.x));
    const [bottom, top] = extent(this.#items.map((item) => item.y));
    const { width, height } = this.#size;
    const unit = Math.max((right - left) / width, (top - bottom) / height) * (1 + 2 * MARGIN);
    return { x: (left + right) / 2, y: (bottom + top) / 2, unit: unit || 1 / width };
  }
}

function extent(numbers) {
  return numbers.length === 0 ? [0, 0] : [Math.min(...numbers), Math.max(...numbers)];
}

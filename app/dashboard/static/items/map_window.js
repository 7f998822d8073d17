/** The part of the plane that is in view: moved by wheel and drag, and by buttons for the keyboard. */

import { cssColor } from "../shell/chart.js";
import { element } from "../shell/html.js";

const ZOOM = 1.5;
const PAN = 0.25;
const MARGIN = 0.05;
const MOVES = [
  ["+", "Zoom in", { zoom: ZOOM }],
  ["−", "Zoom out", { zoom: 1 / ZOOM }],
  ["←", "Move left", { x: -PAN }],
  ["→", "Move right", { x: PAN }],
  ["↑", "Move up", { y: PAN }],
  ["↓", "Move down", { y: -PAN }],
];

export class MapWindow {
  #chart;
  #place;
  #size = { width: 1, height: 1 };
  #items = [];
  /** `{x, y}`, the centre, and `unit`, how much of the plane a pixel covers; null: all of it. */
  #view = null;
  #isMoving = false;

  /** `place` is the element that `chart` draws into; `buttons` is filled with some. */
  constructor(chart, place, buttons) {
    this.#chart = chart;
    this.#place = place;
    const button = (sign, name, act) => {
      const made = element("button", { type: "button", "aria-label": name, title: name }, sign);
      made.addEventListener("click", act);
      return made;
    };
    buttons.replaceChildren(
      ...MOVES.map(([sign, name, move]) => button(sign, name, () => this.#move(move))),
      button("Reset", "Reset the map", () => this.#look(null)),
    );
    chart.on("plotly_relayout", () => this.#follow());
    chart.on("plotly_doubleclick", () => this.#look(null));
  }

  /** Let the whole be these items, where they are others than before. */
  cover(items) {
    if (items === this.#items) return;
    this.#items = items;
    this.#view = null;
  }

  /** What plotly.js needs to know besides the layout. */
  get config() {
    return { scrollZoom: true, doubleClick: false };
  }

  /** Axes of one scale, called `names`, for an area of so many pixels, as plotly.js takes them. */
  layout(size, names) {
    this.#size = size;
    const [x, y] = this.#ranges();
    const axis = { fixedrange: false, showticklabels: false, showgrid: false, zeroline: false };
    // A finger on the map scrolls the page; it has the buttons.
    const isFinger = matchMedia("(pointer: coarse)").matches;
    return {
      dragmode: isFinger ? false : "pan",
      xaxis: { ...axis, range: x, title: { text: names[0] } },
      yaxis: {
        ...axis,
        range: y,
        showline: true,
        linecolor: cssColor("--faint"),
        scaleanchor: "x",
        title: { text: names[1] },
      },
    };
  }

  #move({ zoom = 1, x = 0, y = 0 }) {
    const view = this.#view ?? this.#whole();
    const { width, height } = this.#size;
    const unit = view.unit / zoom;
    this.#look({ x: view.x + x * width * unit, y: view.y + y * height * unit, unit });
  }

  async #look(view) {
    this.#view = view;
    const [x, y] = this.#ranges();
    this.#isMoving = true;
    await this.#chart.relayout({ "xaxis.range": x, "yaxis.range": y });
    this.#isMoving = false;
  }

  /** Take over where the pointer has moved the map to. */
  #follow() {
    if (this.#isMoving) return;
    const [x, y] = [this.#place.layout.xaxis.range, this.#place.layout.yaxis.range];
    this.#view = { x: middle(x), y: middle(y), unit: (x[1] - x[0]) / this.#size.width };
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

const middle = ([from, to]) => (from + to) / 2;

function extent(numbers) {
  return numbers.length === 0 ? [0, 0] : [Math.min(...numbers), Math.max(...numbers)];
}

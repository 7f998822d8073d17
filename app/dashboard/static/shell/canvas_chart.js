// @ts-check
/**
 * Charts that a page paints itself, on two canvases: one for what stays while the query time moves,
 * and one over it for what moves. A step of the slider then repaints a few lines and texts.
 */

import { html, render } from "./html.js";

/**
 * @typedef {{width: number, height: number}} Size in CSS pixels
 * @typedef {CanvasRenderingContext2D} Context
 */

/** One chart in an element of the class `canvas-chart`. */
export class CanvasChart {
  #container;
  #base = document.createElement("canvas");
  #over = document.createElement("canvas");
  #tip = document.createElement("div");
  #paintBase;
  #paintOver;
  /** @type {number | null} */
  #frame = null;
  #isBaseStale = false;

  /**
   * @param {HTMLElement} container
   * @param {object} options
   * @param {(context: Context, size: Size) => void} options.paintBase
   * @param {(context: Context, size: Size) => void} options.paintOver
   */
  constructor(container, { paintBase, paintOver }) {
    this.#container = container;
    this.#paintBase = paintBase;
    this.#paintOver = paintOver;
    this.#tip.className = "tip";
    this.#tip.setAttribute("aria-hidden", "true");
    this.#tip.hidden = true;
    for (const canvas of [this.#base, this.#over]) canvas.setAttribute("aria-hidden", "true");
    container.append(this.#base, this.#over, this.#tip);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(container);
  }

  /** The size of the chart, in CSS pixels. */
  get size() {
    return { width: this.#container.clientWidth, height: this.#container.clientHeight };
  }

  /** Paints all of the chart in the next frame of the screen. */
  draw() {
    this.#isBaseStale = true;
    this.drawOver();
  }

  /** Paints in the next frame what moves; once, however often it is called before. */
  drawOver() {
    this.#frame ??= requestAnimationFrame(() => this.drawNow());
  }

  /** Paints at once what is stale. */
  drawNow() {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
    const { size } = this;
    if (size.width === 0 || size.height === 0) return;
    if (this.#isBaseStale) {
      this.#paintBase(clear(this.#base, size), size);
      this.#isBaseStale = false;
    }
    this.#paintOver(clear(this.#over, size), size);
  }

  /** The chart for a picture. */
  toDrawing() {
    const { size } = this;
    const paint = (context) => {
      this.#paintBase(context, size);
      this.#paintOver(context, size);
    };
    return { ...size, paint };
  }

  /**
   * Shows a tooltip beside a point of the chart.
   *
   * @param {any[]} lines texts, nodes or templates
   * @param {{x: number, y: number}} point
   */
  showTip(lines, { x, y }) {
    render(lines.map((line) => html`<div>${line}</div>`), this.#tip);
    this.#tip.hidden = false;
    const { width, height } = this.size;
    const isRight = x > width / 2;
    const isLow = y > height / 2;
    const { style } = this.#tip;
    style.setProperty("left", isRight ? "auto" : `${x + 12}px`);
    style.setProperty("right", isRight ? `${width - x + 12}px` : "auto");
    style.setProperty("top", isLow ? "auto" : `${y + 12}px`);
    style.setProperty("bottom", isLow ? `${height - y + 12}px` : "auto");
  }

  hideTip() {
    this.#tip.hidden = true;
  }

  /** The point of the chart under a pointer event. */
  pointOf(event) {
    const { left, top } = this.#container.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }
}

/** A cleared context in CSS pixels, sharp on the screen. */
function clear(canvas, { width, height }) {
  const ratio = globalThis.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const context = /** @type {Context} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** A text, shortened to a width of the context's font. */
export function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [least, most] = [0, text.length];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) least = middle;
    else most = middle - 1;
  }
  return least === 0 ? "" : `${text.slice(0, least).trimEnd()}…`;
}

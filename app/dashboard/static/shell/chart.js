// @ts-check
/**
 * Charts: plotly.js 4.1.1 (its basic build, vendored: traces of the types scatter and bar) in the
 * page's colours. It loads while the page waits for the first response.
 */

import { cssColor } from "./colors.js";
import { html, render } from "./html.js";

export { cssColor };

const MARGIN = { l: 56, r: 14, t: 14, b: 46 };

/** @type {Promise<any>} resolves to the library */
const loading = loadPlotly();
// Each drawing reports the failure.
loading.catch(() => {});

/**
 * One chart. It is redrawn when the page's width or colour scheme changes; its tooltip shows text
 * as text.
 */
export class Chart {
  #container;
  #tip = document.createElement("div");
  /** @type {((size: {width: number, height: number}) => any) | null} */
  #build = null;
  /** @type {((point: any) => any[] | null) | null} */
  #describePoint = null;
  #drawing = Promise.resolve();
  /** @type {Promise<void> | null} */
  #waiting = null;
  #listeners = [];
  #isNew = true;

  /**
   * @param {any} container an element of the class `plot`, within a positioned one such as a figure
   */
  constructor(container) {
    this.#container = container;
    this.#tip.className = "tip";
    this.#tip.setAttribute("aria-hidden", "true");
    this.#tip.hidden = true;
    container.after(this.#tip);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(container);
  }

  /**
   * Draws a chart. Text that plotly.js draws (names, ticks, annotations) must pass through
   * `escapeText`.
   *
   * @param {(size: {width: number, height: number}) => {traces: any[], layout: any, config?: any}} build
   *   returns what plotly.js takes, merged over the page's own layout; `size` is that of the plotting
   *   area in pixels. `config` is for charts that can be zoomed.
   * @param {((point: any) => any[] | null) | null} [describePoint] returns the lines of the tooltip
   *   (texts, nodes or templates) for the point under the pointer, or null for no tooltip
   * @returns {Promise<void>} resolves once the chart is drawn
   */
  draw(build, describePoint = null) {
    this.#build = build;
    this.#describePoint = describePoint;
    this.#tip.hidden = true;
    return this.redraw();
  }

  /** Draws the same chart again, for another width or colour scheme. */
  redraw() {
    if (this.#build === null) return this.#drawing;
    // One at a time: plotly.js does not support a second drawing within the first. Requests that
    // arrive while one waits are covered by it.
    this.#waiting ??= this.#drawing
      .catch(() => {})
      .then(() => loading)
      .then(() => {
        this.#waiting = null;
        return this.#redraw();
      });
    this.#drawing = this.#waiting;
    return this.#drawing;
  }

  /** Calls `listener(event)` for an event of plotly.js, such as "plotly_click". */
  on(name, listener) {
    this.#listeners.push([name, listener]);
    if (!this.#isNew) this.#container.on(name, listener);
  }

  /** Changes properties of traces without building anew: `Plotly.restyle`. */
  async restyle(changes, traces) {
    await this.#drawing;
    if (!this.#isNew) await (await loading).restyle(this.#container, changes, traces);
  }

  /** Changes the layout, such as a range, without building anew: `Plotly.relayout`. */
  async relayout(changes) {
    await this.#drawing;
    if (!this.#isNew) await (await loading).relayout(this.#container, changes);
  }

  /**
   * The chart as it is drawn, for a picture: with a legend of its traces that have a name, if they are
   * several.
   *
   * @returns {Promise<{width: number, height: number, paint: (context: any) => void}>}
   */
  async toDrawing() {
    await this.#drawing;
    const Plotly = await loading;
    const { data, layout } = structuredClone({ data: this.#container.data, layout: this.#container.layout });
    const names = data.filter(isInLegend).map(({ name }) => name);
    const width = Math.max(layout.width, PICTURE.width);
    const legendHeight = names.length > 1 ? measureLegend(names, layout, width) : 0;
    const height = Math.max(layout.height, PICTURE.height) + legendHeight;
    const pictured = {
      data: data.map((trace) => ({ ...trace, showlegend: isInLegend(trace) })),
      layout: {
        ...layout,
        showlegend: names.length > 1,
        legend: { orientation: "h", itemsizing: "constant", x: 0, y: 1, yanchor: "bottom", yref: "paper" },
        margin: { ...layout.margin, t: layout.margin.t + legendHeight },
      },
    };
    const text = await Plotly.toImage(pictured, { format: "svg", width, height, imageDataOnly: true });
    return { width, height, paint: (context) => context.insertSvg(text) };
  }

  async #redraw() {
    const Plotly = await loading;
    const { clientWidth, clientHeight } = this.#container;
    if (clientWidth === 0 || this.#build === null) return;
    const size = {
      width: clientWidth - MARGIN.l - MARGIN.r,
      height: clientHeight - MARGIN.t - MARGIN.b,
    };
    const { traces, layout, config = {} } = this.#build(size);
    const hasTip = this.#describePoint !== null;
    const quiet = hasTip ? traces.map((trace) => ({ hoverinfo: "none", ...trace })) : traces;
    await Plotly.react(this.#container, quiet, mergeLayout(layout, clientWidth, clientHeight), {
      displayModeBar: false,
      responsive: false,
      ...config,
    });
    if (this.#isNew) this.#listen();
    this.#isNew = false;
  }

  #listen() {
    this.#container.on("plotly_hover", ({ points: [point], event }) =>
      this.showTip(this.#describePoint?.(point) ?? null, event),
    );
    this.#container.on("plotly_unhover", () => this.showTip(null));
    for (const [name, listener] of this.#listeners) this.#container.on(name, listener);
  }

  /**
   * Shows the tooltip at the pointer, for what is not a point of plotly.js; null hides it.
   *
   * @param {any[] | null} lines texts, nodes or templates
   * @param {any} [pointer] the event
   */
  showTip(lines, pointer) {
    this.#tip.hidden = lines === null;
    if (lines === null) return;
    render(
      lines.map((line) => html`<span class="block">${line}</span>`),
      this.#tip,
    );
    const frame = this.#container.getBoundingClientRect();
    const x = pointer.clientX - frame.left;
    const room = frame.width - this.#tip.offsetWidth;
    this.#tip.style.left = `${Math.max(0, Math.min(x + 12, room))}px`;
    this.#tip.style.top = `${this.#container.offsetTop + pointer.clientY - frame.top + 14}px`;
  }
}

/** The least size of a picture, in pixels: that of a narrow screen would cut off its texts. */
const PICTURE = { width: 560, height: 260 };
const LEGEND = { mark: 50, row: 19, margin: 12 };

const isInLegend = ({ name, showlegend }) => Boolean(name) && showlegend !== false;

/** The pixels that a legend above a chart takes; plotly.js sets it in columns of equal width. */
function measureLegend(names, { font, margin }, width) {
  const context = /** @type {any} */ (document.createElement("canvas").getContext("2d"));
  context.font = `${font.size}px ${font.family}`;
  const widest = Math.max(...names.map((name) => context.measureText(name).width)) + LEGEND.mark;
  const columns = Math.max(1, Math.floor((width - margin.l - margin.r) / widest));
  return Math.ceil(names.length / columns) * LEGEND.row + LEGEND.margin;
}

/** Escapes untrusted text for plotly.js, which interprets tags in it. */
export const escapeText = (text) =>
  String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function mergeLayout(layout, width, height) {
  const font = {
    family: getComputedStyle(document.body).fontFamily,
    size: 12,
    color: cssColor("--quiet"),
  };
  const own = {
    width,
    height,
    margin: MARGIN,
    showlegend: false,
    dragmode: false,
    hovermode: "closest",
    hoverdistance: 12,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font,
  };
  const merged = { ...own, ...layout };
  for (const name of Object.keys(merged).filter((name) => /^[xy]axis\d*$/.test(name))) {
    merged[name] = { ...defaultAxis(name), ...merged[name] };
  }
  return merged;
}

/** Faint horizontal grid lines; the x axis as a line of its own. */
function defaultAxis(name) {
  const grid = { gridcolor: cssColor("--line"), zeroline: false, fixedrange: true, automargin: true };
  return name.startsWith("x")
    ? { ...grid, showgrid: false, showline: true, linecolor: cssColor("--faint"), tickangle: 0 }
    : { ...grid, nticks: 5 };
}

async function loadPlotly() {
  const script = document.createElement("script");
  script.src = new URL("vendor/plotly-basic.min.js", document.baseURI).href;
  const loaded = new Promise((resolve, reject) => {
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error("plotly.js could not be loaded")));
  });
  document.head.append(script);
  dropStyleElements();
  await loaded;
  Reflect.deleteProperty(document.head, "appendChild");
  return /** @type {any} */ (globalThis).Plotly;
}

/**
 * While plotly.js runs for the first time, drops the style element of its map library: the pages
 * have no maps, and the Content-Security-Policy would refuse it with an error on the console.
 */
function dropStyleElements() {
  /** @type {any} */
  const head = document.head;
  head.appendChild = (node) =>
    node.nodeName === "STYLE" ? node : Node.prototype.appendChild.call(head, node);
}

const SERIES = 8;

/** The custom property with the colour of the series at an index. */
export const seriesToken = (index) => `--series-${(index % SERIES) + 1}`;

/** Any CSS colour as an rgba with this opacity, for bands. */
export function withOpacity(css, opacity) {
  const canvas = /** @type {any} */ (document.createElement("canvas").getContext("2d"));
  canvas.fillStyle = css;
  const [red, green, blue] = canvas.fillStyle.match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16));
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

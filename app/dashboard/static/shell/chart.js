/**
 * One picture: drawn by plotly.js in the page's colours, drawn again when the page's width or
 * colour scheme changes, with a tip that shows text as text.
 */

import { element } from "./dom.js";
import { color } from "./palette.js";
import { plotly } from "./plotly.js";

const MARGIN = { l: 56, r: 14, t: 14, b: 46 };

export class Chart {
  #place;
  #tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true });
  #build = null;
  #tell = null;
  #drawing = Promise.resolve();
  #waiting = null;
  #listeners = [];
  #isNew = true;

  /** `place` is an element of the class `plot`, within one that is positioned, such as a figure. */
  constructor(place) {
    this.#place = place;
    place.after(this.#tip);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(place);
  }

  /**
   * Draw what `build({width, height})` answers, `{traces, layout}` as plotly.js takes them, on top
   * of the page's own layout; width and height are those of the plotting area in pixels. `tell(point)`
   * answers the children of the tip for a point under the pointer, or null for none. A `config`
   * beside them is plotly.js's, for pictures that can be zoomed.
   *
   * Text that plotly.js draws (names, ticks, annotations) must pass through `plain`. Resolves once
   * the picture is there.
   */
  draw(build, tell = null) {
    this.#build = build;
    this.#tell = tell;
    this.#tip.hidden = true;
    return this.redraw();
  }

  /** Draw the same again, for another width or colour scheme. */
  redraw() {
    if (this.#build === null) return this.#drawing;
    // One after the other: plotly.js minds being asked for a second picture within the first. What is
    // asked for while one waits is in that one.
    this.#waiting ??= this.#drawing
      .catch(() => {})
      .then(plotly)
      .then(() => {
        this.#waiting = null;
        return this.#redraw();
      });
    this.#drawing = this.#waiting;
    return this.#drawing;
  }

  /** Call `listener(event)` for an event of plotly.js, such as "plotly_click". */
  on(name, listener) {
    this.#listeners.push([name, listener]);
    if (!this.#isNew) this.#place.on(name, listener);
  }

  /** Change properties of traces, without building anew: as Plotly.restyle. */
  async restyle(changes, traces) {
    await this.#drawing;
    if (!this.#isNew) await (await plotly()).restyle(this.#place, changes, traces);
  }

  /** Change the layout, such as a range, without building anew: as Plotly.relayout. */
  async relayout(changes) {
    await this.#drawing;
    if (!this.#isNew) await (await plotly()).relayout(this.#place, changes);
  }

  async #redraw() {
    const Plotly = await plotly();
    const { clientWidth, clientHeight } = this.#place;
    if (clientWidth === 0) return;
    const size = {
      width: clientWidth - MARGIN.l - MARGIN.r,
      height: clientHeight - MARGIN.t - MARGIN.b,
    };
    const { traces, layout, config = {} } = this.#build(size);
    const quiet = this.#tell === null ? traces : traces.map((trace) => ({ hoverinfo: "none", ...trace }));
    await Plotly.react(this.#place, quiet, withinThePage(layout, clientWidth, clientHeight), {
      displayModeBar: false,
      responsive: false,
      ...config,
    });
    if (this.#isNew) this.#listen();
    this.#isNew = false;
  }

  #listen() {
    this.#place.on("plotly_hover", (hover) => this.#showTip(hover));
    this.#place.on("plotly_unhover", () => {
      this.#tip.hidden = true;
    });
    for (const [name, listener] of this.#listeners) this.#place.on(name, listener);
  }

  #showTip({ points: [point], event: pointer }) {
    const children = this.#tell?.(point) ?? null;
    this.#tip.hidden = children === null;
    if (children === null) return;
    this.#tip.replaceChildren(
      ...children.map((child) => element("span", { class: "block" }, child)),
    );
    const frame = this.#place.getBoundingClientRect();
    const x = pointer.clientX - frame.left;
    const room = frame.width - this.#tip.offsetWidth;
    this.#tip.style.left = `${Math.max(0, Math.min(x + 12, room))}px`;
    this.#tip.style.top = `${this.#place.offsetTop + pointer.clientY - frame.top + 14}px`;
  }
}

/** Untrusted text for plotly.js, which would take tags within it for its own. */
export const plain = (text) =>
  String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function withinThePage(layout, width, height) {
  const font = {
    family: getComputedStyle(document.body).fontFamily,
    size: 12,
    color: color("--quiet"),
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
  const made = { ...own, ...layout };
  for (const name of Object.keys(made).filter((name) => /^[xy]axis\d*$/.test(name))) {
    made[name] = { ...axis(name), ...made[name] };
  }
  return made;
}

/** Faint lines to read heights by; the bottom as a line of its own. */
function axis(name) {
  const grid = { gridcolor: color("--line"), zeroline: false, fixedrange: true, automargin: true };
  return name.startsWith("x")
    ? { ...grid, showgrid: false, showline: true, linecolor: color("--faint"), tickangle: 0 }
    : { ...grid, nticks: 5 };
}

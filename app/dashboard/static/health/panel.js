/** One panel: the newest figure large, the last fifteen minutes beside it, each line's figure below. */

import { Chart } from "../shell/chart.js";
import { formatInstant } from "../shell/format.js";
import { element } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { judge, worst } from "./limits.js";
import { lines as drawn } from "./time_chart.js";

/** A judgement as a word in its colour; nothing where there is none. */
export function showState(place, state) {
  place.textContent = state ?? "";
  place.className = `state ${state ?? "none"}`;
}

export class Panel {
  #about;
  #state;
  #newest = element("strong", {});
  #which = element("span", { class: "which" });
  #span = element("p", { class: "note" });
  #legend = element("ul", { class: "legend" });
  #plot;
  #empty = element("p", { class: "note" }, "Nothing to draw yet.");
  #chart;
  #table = element("details", {});
  #points = [];
  #isSeen = false;
  #isDue = false;

  /** `about` is one of PANELS; `node` is to be put on the page. */
  constructor(about) {
    this.#about = about;
    const { id, heading, note } = about;
    this.#state = element("span", { id: `state-${id}`, class: "state none" });
    this.#newest.id = `newest-${id}`;
    this.#plot = element("div", { id: `chart-${id}`, class: "plot", role: "img" });
    const figure = element("figure", {}, this.#plot, this.#empty);
    const title = element("h2", { id: `heading-${id}` }, heading);
    const newest = element("div", {}, element("p", {}, this.#newest, this.#which), this.#span);
    this.node = element(
      "section",
      { class: "card panel", "aria-labelledby": `heading-${id}` },
      element("div", { class: "heading-row" }, title, this.#state),
      element("div", { class: "beside" }, newest, figure),
      this.#legend,
      element("p", { class: "note" }, note),
      this.#table,
    );
    this.#chart = new Chart(this.#plot);
    this.#listSeries();
    // Nobody sees a picture that is scrolled away: it is drawn when it comes back.
    new IntersectionObserver(([entry]) => {
      this.#isSeen = entry.isIntersecting;
      if (this.#isSeen && this.#isDue) this.#draw();
    }).observe(this.#plot);
  }

  get heading() {
    return this.#about.heading;
  }

  /**
   * Show what was measured: `values`, a number or null for each line, over `span` in words; and
   * `points`, the earlier ones. Answers the judgement, null while figures are of all since the start.
   */
  show({ values, span, isSinceStart, points }) {
    const { lines, say } = this.#about;
    const place = headline(this.#about, values);
    this.#newest.textContent = say(values[place]);
    this.#which.textContent = lines.length > 1 ? lines[place].name : "";
    this.#span.textContent = values.every((value) => value === null) ? `none ${span}` : span;
    [...this.#legend.children].forEach((entry, line) => {
      entry.lastChild.textContent = say(values[line]);
    });
    const state = isSinceStart ? null : this.#judged(values);
    showState(this.#state, state);
    this.#take(points);
    return state;
  }

  #judged(values) {
    const { lines } = this.#about;
    return worst(lines.map(({ limit }, line) => (limit ? judge(values[line], limit) : null)));
  }

  #take(points) {
    const { id, heading, lines } = this.#about;
    this.#points = points.map(({ at, values }) => ({ at, values: values[id] }));
    const isEmpty = this.#points.every(({ values }) => values.every((value) => value === null));
    this.#plot.hidden = isEmpty;
    this.#empty.hidden = !isEmpty;
    this.#isDue = !isEmpty;
    const names = lines.map(({ name }) => name).join(", ");
    this.#plot.setAttribute("aria-label", `${heading} in the last 15 minutes: ${names}`);
    if (this.#isSeen && this.#isDue) this.#draw();
    if (!this.#table.querySelector(":hover, .scroller:focus")) this.#tabulate();
  }

  #draw() {
    this.#isDue = false;
    const points = this.#points;
    const { lines, say } = this.#about;
    this.#chart.draw(
      () => drawn(this.#about, points),
      ({ x, curveNumber, y }) => [
        `${String(x).slice(11, 19)} UTC`,
        `${lines[curveNumber].name} ${say(y / (this.#about.scale ?? 1))}`,
      ],
    );
  }

  #listSeries() {
    const { lines } = this.#about;
    this.#legend.hidden = lines.length < 2;
    for (const [place, { name }] of lines.entries()) {
      const swatch = element("span", { class: `swatch line-${place + 1}` });
      this.#legend.append(element("li", {}, swatch, ` ${name} `, element("b", {})));
    }
  }

  #tabulate() {
    const { heading, lines, say } = this.#about;
    showAsTable(this.#table, {
      caption: `${heading}, newest first`,
      columns: ["Time (UTC)", ...lines.map(({ name }) => name)],
      rows: this.#points.toReversed().map(({ at, values }) => [formatInstant(at), ...values.map(say)]),
    });
  }
}

/** The line whose figure stands large. */
function headline({ headline: which }, values) {
  return which === "longest" ? Math.max(0, values.indexOf(Math.max(...values))) : 0;
}

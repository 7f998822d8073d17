/** The part of the page about intensities: a user, the groups, and how likely each is over time. */

import { LatestRequest } from "../shell/api.js";
import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { formatInstant, formatMetric, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { showProblem } from "../shell/page.js";
import { showAsTable } from "../shell/tables.js";
import { SeriesLegend, seriesStyles, styleColor } from "../widgets/series.js";
import { UserPicker } from "../widgets/user_picker.js";
import { readIntensities } from "./intensities.js";

const MOST_GROUPS = 8;
const PIXELS_PER_DATE = 100;

export class IntensityCard {
  #chart = new Chart(byId("intensity-plot"));
  #legend;
  #picker;
  #answers;
  #settled;
  #asked = null;
  #shown = null;
  #chosen = null;

  /** `choose(user)` for a user that is picked; `settled()` once what was asked is drawn. */
  constructor({ choose, settled }) {
    this.#settled = settled;
    this.#picker = new UserPicker({ choose, fail: showProblem });
    this.#legend = new SeriesLegend(byId("intensity-legend"), {
      choose: (groups) => this.#choose(groups),
      noun: "groups",
      most: MOST_GROUPS,
    });
    this.#answers = new LatestRequest({
      send: ({ user, version }, signal) => readIntensities(user, version, signal),
      show: (answer, asked) => this.#take(answer, asked),
      fail: (error) => {
        this.#asked = null;
        showProblem(error);
      },
      pause: 0,
    });
  }

  /** Whether nothing is under way. */
  get isIdle() {
    return this.#answers.isIdle;
  }

  /** List the users; answers the first one's id, or null. */
  async open() {
    const users = await this.#picker.open();
    return users[0]?.user_id ?? null;
  }

  /** Ask for a user's intensities by a version that has some, and show them, unless they are shown. */
  ask(user, version) {
    const asked = JSON.stringify([user, version]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#picker.select(user);
    byId("intensity-user").textContent = user;
    this.#answers.cancel();
    this.#answers.request({ user, version });
  }

  /** Let go of what was asked. */
  drop() {
    this.#answers.cancel();
    this.#asked = this.#shown = null;
  }

  #take(answer, { user }) {
    const isAnother = JSON.stringify(this.#shown?.groups) !== JSON.stringify(answer.groups);
    this.#shown = answer;
    if (isAnother) this.#chosen = null;
    const groups = (answer.groups ?? []).map((name, place) => ({ name, key: String(place) }));
    const keys = groups.map((group) => group.key);
    const chosen = this.#chosen ?? keys.slice(0, MOST_GROUPS);
    const styles = seriesStyles(keys);
    this.#legend.show(
      groups.map(({ name, key }) => ({ key, label: name, style: styles.get(key) })),
      chosen,
    );
    const isEmpty = groups.length === 0;
    byId("intensity-figure").hidden = isEmpty;
    byId("intensity-note").textContent = isEmpty
      ? `${user} has no event that this model reads, so there are no intensities.`
      : "";
    this.#draw(groups.filter(({ key }) => chosen.includes(key)), styles);
  }

  #choose(chosen) {
    this.#chosen = chosen;
    const keys = (this.#shown?.groups ?? []).map((_, place) => String(place));
    const groups = chosen.map((key) => ({ key, name: this.#shown.groups[key] }));
    this.#draw(groups, seriesStyles(keys));
  }

  #draw(groups, styles) {
    const { instants, events } = this.#shown;
    byId("intensity-caption").textContent =
      `Per day, of the last block, averaged over heads; asked at ${pluralize(instants.length, "instant")}. ` +
      `Ticks on the axis are the ${pluralize(events.length, "instant")} with events.`;
    showAsTable(byId("intensity-table"), {
      caption: "Intensities by instant",
      columns: ["Instant (UTC)", ...groups.map((group) => group.name)],
      rows: instants.map(({ at, intensities }) => [
        formatInstant(at),
        ...groups.map(({ key }) => formatMetric(intensities?.[key])),
      ]),
    });
    const build = ({ width }) => pictureOf(groups, styles, this.#shown, width);
    const tell = ({ curveNumber, pointNumber }) =>
      curveNumber < groups.length
        ? tipOf(groups[curveNumber], instants[pointNumber])
        : ["event", `${formatInstant(events[pointNumber])} UTC`];
    this.#chart.draw(build, tell).then(this.#settled, showProblem);
  }
}

function pictureOf(groups, styles, { instants, events }, width) {
  const lines = groups.map(({ key, name }) => ({
    name: escapeText(name),
    type: "scatter",
    mode: "lines+markers",
    x: instants.map(({ at }) => at),
    y: instants.map(({ intensities }) => intensities?.[key] ?? null),
    line: { color: styleColor(styles.get(key)), width: 1.8 },
    marker: {
      symbol: styles.get(key).symbol,
      // A shape here and there tells lines apart; one at every instant would hide them.
      size: instants.map((_, place) => (place % 40 === 20 ? 8 : 0.1)),
      line: { width: 0 },
    },
  }));
  const ticks = {
    name: "events",
    type: "scatter",
    mode: "markers",
    x: events,
    y: events.map(() => 0),
    cliponaxis: false,
    marker: { symbol: "line-ns-open", size: 9, color: cssColor("--faint"), line: { width: 1 } },
  };
  return {
    traces: [...lines, ticks],
    layout: {
      xaxis: {
        type: "date",
        title: { text: "when (UTC)" },
        nticks: Math.max(3, Math.round(width / PIXELS_PER_DATE)),
      },
      yaxis: { title: { text: "intensity per day" }, rangemode: "tozero" },
    },
  };
}

const tipOf = ({ key, name }, { at, intensities }) => [
  element("span", { class: "title" }, name),
  `${formatInstant(at)} UTC`,
  `${formatMetric(intensities?.[key])} per day`,
];

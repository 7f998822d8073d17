// @ts-check
/** The Intensity card: the intensity of each item group for one user, over time. */

import { LatestRequest, readHistory, sendRequest } from "../shell/api.js";
import { Chart, cssColor, escapeText } from "../shell/chart.js";
import { DAY, formatCount, formatInstant, formatMetric, pluralize, SECOND } from "../shell/format.js";
import { byId, failure, html, nothing, render } from "../shell/html.js";
import { showProblem } from "../shell/page.js";
import { showAsTable } from "../shell/tables.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { SeriesLegend, seriesStyles, styleColor } from "../widgets/series.js";
import { UserPicker } from "../widgets/user_picker.js";

/**
 * @typedef {object} Intensities
 * @property {string[] | null} groups names; null if the history has no event that the model reads
 * @property {{at: number, intensities: number[] | null}[]} instants milliseconds, and one per group
 * @property {number[]} events milliseconds, distinct
 * @property {string} limit a sentence if older events are not among them
 * @property {import("../shell/api.js").ApiRequest | null} request null without one
 *
 * @typedef {{name: string, key: string}} Group `key` is its index, as text
 */

const MOST_GROUPS = 8;
const PIXELS_PER_DATE = 100;
const MARKER_SPACING = 40;

/** @type {Intensities} */
const NOTHING = { groups: null, instants: [], events: [], limit: "", request: null };

/** Whether a version has intensities: its encoder modulates attention. */
export const hasIntensities = (description) =>
  Boolean(description?.manifest.recommender.encoder.modulation);

export class IntensityCard {
  #chart = new Chart(byId("intensity-plot"));
  #legend;
  #picker;
  #requests;
  #onDrawn;
  /** Whether any user has events; null if that is not known. @type {boolean | null} */
  #hasUsers = null;
  /** The request whose response is shown or in flight, as JSON. */
  #requested = "";
  /** @type {Intensities} */
  #shown = NOTHING;
  /** @type {string[] | null} the keys of the chosen groups; null for the first ones */
  #chosen = null;

  /**
   * @param {object} options
   * @param {(userId: string) => void} options.choose called for a user that is picked
   * @param {() => void} options.onDrawn called once the chart is drawn
   */
  constructor({ choose, onDrawn }) {
    this.#onDrawn = onDrawn;
    this.#picker = new UserPicker({ choose });
    this.#legend = new SeriesLegend(byId("intensity-legend"), {
      choose: (keys) => {
        this.#chosen = keys;
        this.#draw();
      },
      noun: "groups",
      most: MOST_GROUPS,
    });
    this.#requests = new LatestRequest({
      send: ({ user, version }, signal) => readIntensities(user, version, signal),
      show: (response, { user }) => this.#show(response, user),
      fail: (error, { user, version }) => {
        this.#clearFigure();
        const retry = () => {
          this.#requested = "";
          this.load(user, version);
        };
        render(failure(error.message, retry), byId("intensity-note"));
        // Once no request is in flight.
        Promise.resolve().then(this.#onDrawn);
      },
      pause: 0,
    });
    new TakeAway(byId("intensities"), () => this.#take());
  }

  /** Whether no request waits or is in flight. */
  get isIdle() {
    return this.#requests.isIdle;
  }

  /**
   * Lists the users.
   *
   * @param {() => void} retry called by a button if that fails
   * @returns {Promise<string | null>} the id of the first user; null if there is none, or it is not known
   */
  async open(retry) {
    const users = await this.#picker.open(retry);
    this.#hasUsers = users === null ? null : users.length > 0;
    return users?.[0]?.user_id ?? null;
  }

  /** Says why no user is chosen. */
  showNoUser() {
    const note = this.#hasUsers === false ? "No customer has events yet; send some to /v1/events." : "";
    render(note, byId("intensity-note"));
  }

  /**
   * Requests and shows the intensities of a user, unless they are shown already.
   *
   * @param {string} user
   * @param {string} version one that has intensities
   */
  load(user, version) {
    const requested = JSON.stringify([user, version]);
    if (requested === this.#requested) return;
    this.#requested = requested;
    this.#picker.select(user);
    byId("intensity-user").textContent = user;
    this.#clearFigure();
    render(nothing, byId("intensity-note"));
    this.#requests.cancel();
    this.#requests.request({ user, version });
  }

  /** Cancels the request in flight, and forgets what is shown. */
  clear() {
    this.#requests.cancel();
    this.#requested = "";
    this.#clearFigure();
  }

  #clearFigure() {
    this.#shown = NOTHING;
    byId("intensity-figure").hidden = true;
  }

  #take() {
    const { instants, request } = this.#shown;
    if (request === null || this.#groups.length === 0) {
      return { why: byId("intensity-note").textContent || "No intensities are shown yet." };
    }
    const { user_id: user, model_version: version } = request.body;
    return {
      title: `Intensity of each group of items for ${user}`,
      caption: `Version ${version}. ${byId("intensity-caption").textContent}`,
      name: toFileName("intensities", user),
      chart: this.#chart,
      rows: instants.map(({ at, intensities }) => ({
        query_time: new Date(at).toISOString(),
        ...Object.fromEntries(
          this.#groups.map(({ name }, index) => [`${name}, per day`, intensities?.[index] ?? null]),
        ),
      })),
      requests: [request],
    };
  }

  /**
   * @param {Intensities} response
   * @param {string} user
   */
  #show(response, user) {
    if (JSON.stringify(this.#shown.groups) !== JSON.stringify(response.groups)) this.#chosen = null;
    this.#shown = response;
    const groups = this.#groups;
    const styles = this.#styles;
    this.#legend.show(
      groups.map(({ name, key }) => ({ key, label: name, style: styles.get(key) })),
      this.#chosenGroups.map(({ key }) => key),
    );
    const isEmpty = groups.length === 0;
    byId("intensity-figure").hidden = isEmpty;
    const note = isEmpty ? `${user} has no event that this model reads, so there are no intensities.` : "";
    render(note, byId("intensity-note"));
    this.#draw();
  }

  /** @returns {Group[]} */
  get #groups() {
    return (this.#shown.groups ?? []).map((name, index) => ({ name, key: String(index) }));
  }

  get #chosenGroups() {
    const groups = this.#groups;
    const chosen = this.#chosen ?? groups.slice(0, MOST_GROUPS).map(({ key }) => key);
    return groups.filter(({ key }) => chosen.includes(key));
  }

  /** @returns {Map<string, any>} */
  get #styles() {
    return seriesStyles(this.#groups.map(({ key }) => key));
  }

  #draw() {
    const { instants, events, limit } = this.#shown;
    const groups = this.#chosenGroups;
    const styles = this.#styles;
    byId("intensity-caption").textContent =
      `Per day, of the last block, averaged over heads; at ${pluralize(instants.length, "instant")}. ` +
      `Ticks on the axis are the ${pluralize(events.length, "instant")} with events.${limit}`;
    showAsTable(byId("intensity-table"), {
      caption: "Intensities by instant",
      columns: ["Instant (UTC)", ...groups.map((group) => group.name)],
      rows: instants.map(({ at, intensities }) => [
        formatInstant(at),
        ...groups.map(({ key }) => formatMetric(intensities?.[key])),
      ]),
    });
    const drawing = this.#chart.draw(
      ({ width }) => buildChart(groups, styles, this.#shown, width),
      ({ curveNumber, pointNumber }) =>
        curveNumber < groups.length
          ? describePoint(groups[curveNumber], instants[pointNumber])
          : ["event", `${formatInstant(events[pointNumber])} UTC`],
    );
    drawing.then(this.#onDrawn, showProblem);
  }
}

/**
 * @param {Group[]} groups
 * @param {Map<string, any>} styles
 * @param {Intensities} intensities
 * @param {number} width pixels
 */
function buildChart(groups, styles, { instants, events }, width) {
  const lines = groups.map(({ key, name }) => ({
    name: escapeText(name),
    type: "scatter",
    mode: "lines+markers",
    x: instants.map(({ at }) => at),
    y: instants.map(({ intensities }) => intensities?.[key] ?? null),
    line: { color: styleColor(styles.get(key)), width: 1.8 },
    marker: {
      symbol: styles.get(key).symbol,
      // A few markers distinguish the lines; one at every instant would hide them.
      size: instants.map((_, index) => (index % MARKER_SPACING === MARKER_SPACING / 2 ? 8 : 0.1)),
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

const describePoint = ({ key, name }, { at, intensities }) => [
  html`<span class="title">${name}</span>`,
  `${formatInstant(at)} UTC`,
  `${formatMetric(intensities?.[key])} per day`,
];

const LONGEST_HISTORY = 1000;

/**
 * Requests the intensities of a user, from the first event until some time after the last.
 *
 * @param {string} user
 * @param {string} version
 * @param {AbortSignal} signal
 * @returns {Promise<Intensities>} without instants if the user has no event
 */
async function readIntensities(user, version, signal) {
  const { events: history, stored } = await readHistory(user, LONGEST_HISTORY, signal);
  const events = [...new Set(history.map((event) => Date.parse(event.timestamp)))];
  const limit =
    history.length < stored
      ? ` From the newest ${formatCount(history.length)} of ${formatCount(stored)} stored events on.`
      : "";
  if (events.length === 0) return { ...NOTHING, events, limit };
  const body = {
    user_id: user,
    model_version: version,
    query_times: selectQueryTimes(events).map((at) => new Date(at).toISOString()),
  };
  const request = { path: "v1/attention", body };
  const response = await sendRequest(request, signal);
  const instants = response.instants.map(({ query_time: at, intensities }) => ({
    at: Date.parse(at),
    intensities,
  }));
  return { groups: response.groups, instants, events, limit, request };
}

const EVEN_INSTANTS = 280;
const MOST_EVENTS = 100;
const LEAST_AFTER = 30 * DAY;

/**
 * The query times: evenly spaced, and just before and after the newest events, where intensities
 * jump.
 *
 * @param {number[]} events distinct instants, oldest first
 */
function selectQueryTimes(events) {
  const [first, last] = [events[0], events[events.length - 1]];
  const end = last + Math.max((last - first) / 4, LEAST_AFTER);
  const even = Array.from(
    { length: EVEN_INSTANTS },
    (_, number) => first + Math.round(((end - first) * (number + 1)) / EVEN_INSTANTS / SECOND) * SECOND,
  );
  const jumps = events.slice(-MOST_EVENTS).flatMap((at) => [at - SECOND, at + SECOND]);
  return [...new Set([...even, ...jumps])]
    .filter((at) => at > first)
    .sort((one, other) => one - other);
}

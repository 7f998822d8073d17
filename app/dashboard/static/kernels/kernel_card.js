// @ts-check
/** The card of one version's kernel: the charts of psi and of its rhythms, each with a table. */

import { modelRequest } from "../shell/api.js";
import { Chart } from "../shell/chart.js";
import { DAY, formatDuration, formatMetric, formatPercent } from "../shell/format.js";
import { html, render } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { intervalAxis } from "../widgets/time_axes.js";
import {
  drawableRhythms,
  intervalScale,
  pairRhythms,
  psiTraces,
  spectrumTraces,
  toFormula,
} from "./kernel_charts.js";

/**
 * @typedef {import("./kernel_charts.js").Kernel} Kernel
 * @typedef {import("./kernel_charts.js").Rhythm} Rhythm
 *
 * @typedef {object} Extent the common scales of the cards
 * @property {number} longest days
 * @property {number[]} psi lowest and highest
 * @property {{shortest: number, longest: number, highest: number}} spectrum
 */

const HEADROOM = 1.06;

export class KernelCard {
  #section;
  #name;
  #psi;
  #spectrum;
  /** @type {{version: string, kernel: Kernel | null}} */
  #shown = { version: "", kernel: null };

  /**
   * @param {HTMLElement} section filled with the card
   * @param {string} name distinguishes the ids of its elements from those of other cards
   */
  constructor(section, name) {
    this.#section = section;
    this.#name = name;
    section.setAttribute("aria-labelledby", `kernel-${name}`);
    this.#psi = new Figure(`psi-${name}`, "psi, by interval");
    this.#spectrum = new Figure(`spectrum-${name}`, "Rhythms, by period");
    this.#render("", "", false);
    this.#psi.offer(() => this.#taken("psi", toPsiRows));
    this.#spectrum.offer(() => this.#taken("rhythms", toRhythmRows));
  }

  /** Hides the card: there is no version to show. */
  set isHidden(isHidden) {
    this.#section.hidden = isHidden;
  }

  /**
   * Shows a kernel. Resolves once it is drawn.
   *
   * @param {object} shown
   * @param {any} shown.description of the version
   * @param {Kernel | null} shown.kernel null if the version has none
   * @param {Record<string, any>} shown.state of the page
   * @param {Extent} shown.extent
   */
  async show({ description, kernel, state, extent }) {
    this.#shown = { version: description.version, kernel };
    this.#render(description.version, describeKernel(kernel, description), kernel !== null);
    if (kernel === null) return;
    await Promise.all([this.#showPsi(kernel, state, extent), this.#showSpectrum(kernel, extent)]);
  }

  #render(version, about, hasKernel) {
    render(
      html`<h2 id="kernel-${this.#name}">Kernel of <code>${version}</code></h2>
        <p class="note">${about}</p>
        <div class="figures" ?hidden=${!hasKernel}>${this.#psi.node}${this.#spectrum.node}</div>`,
      this.#section,
    );
  }

  /** What is taken away of one chart, but the chart. */
  #taken(word, toRows) {
    const { version, kernel } = this.#shown;
    if (kernel === null) return { why: "This version has no kernel to draw." };
    return {
      caption: `Version ${version}: ${kernel.kind} at ${kernel.place}.`,
      name: toFileName(word, version),
      rows: toRows(kernel),
      requests: [modelRequest(version)],
    };
  }

  #showPsi(kernel, state, extent) {
    this.#psi.describe(describePsi(kernel), psiTable(kernel));
    const scale = (width) => intervalScale(state, extent.longest, width);
    return this.#psi.draw(
      ({ width }) => psiTraces(kernel, scale(width)),
      ({ width }) => ({
        xaxis: scale(width).axis,
        yaxis: { title: { text: "psi" }, range: extent.psi.map((value) => value * HEADROOM) },
      }),
      describePsiPoint,
    );
  }

  #showSpectrum(kernel, extent) {
    const table = kernel.spectrum === null ? null : rhythmTable(kernel);
    this.#spectrum.describe(describeSpectrum(kernel), table);
    if (table === null) return null;
    return this.#spectrum.draw(
      () => spectrumTraces(kernel),
      ({ width }) => ({
        xaxis: intervalAxis(extent.spectrum, width, "period (log)"),
        yaxis: {
          title: { text: "share of all power" },
          tickformat: ".1~%",
          range: [0, extent.spectrum.highest],
        },
      }),
      describeRhythm,
    );
  }
}

/** A heading, a chart, a caption and a table. */
class Figure {
  node = document.createElement("div");
  #id;
  #heading;
  #plot = document.createElement("div");
  #table = document.createElement("details");
  #chart;
  #caption = "";

  /**
   * @param {string} id of the chart's element
   * @param {string} heading
   */
  constructor(id, heading) {
    this.#id = id;
    this.#heading = heading;
    this.#plot.id = id;
    this.#plot.className = "plot";
    this.#plot.role = "img";
    this.#plot.setAttribute("aria-labelledby", `${id}-heading`);
    this.#plot.setAttribute("aria-describedby", `${id}-caption`);
    this.#table.id = `${id}-table`;
    this.#render("");
    this.#chart = new Chart(this.#plot);
  }

  /**
   * @param {string} caption
   * @param {import("../shell/tables.js").TableContent | null} table null to hide chart and table
   */
  describe(caption, table) {
    this.#render(caption);
    this.#plot.hidden = this.#table.hidden = table === null;
    if (table !== null) showAsTable(this.#table, table);
  }

  /** Fills the menu with what `take` returns: all but the chart, its heading and its caption. */
  offer(take) {
    new TakeAway(this.node, () => {
      const taken = take();
      if (this.#plot.hidden || "why" in taken) return { why: taken.why ?? this.#caption };
      const caption = `${taken.caption} ${this.#caption}`;
      return { ...taken, title: this.#heading, caption, chart: this.#chart };
    });
  }

  /**
   * @param {(size: {width: number}) => import("./kernel_charts.js").DrawnTrace[]} build
   * @param {(size: {width: number}) => any} layout
   * @param {(name: string, point: any) => any[]} describePoint the lines of the tooltip
   */
  draw(build, layout, describePoint) {
    /** @type {import("./kernel_charts.js").DrawnTrace[]} */
    let drawn = [];
    return this.#chart.draw(
      (size) => {
        drawn = build(size);
        return { traces: drawn.map(({ trace }) => trace), layout: layout(size) };
      },
      ({ curveNumber, pointNumber }) => {
        const { trace, points } = drawn[curveNumber];
        const point = points[pointNumber];
        return point === undefined ? null : describePoint(trace.name, point);
      },
    );
  }

  #render(caption) {
    this.#caption = caption;
    render(
      html`<div class="heading-row"><h3 id="${this.#id}-heading">${this.#heading}</h3><div class="take-away"></div></div>
        <figure>${this.#plot}<figcaption id="${this.#id}-caption">${caption}</figcaption></figure>
        ${this.#table}`,
      this.node,
    );
  }
}

/** An interval or a period, given in days, such as "2 d 3 h"; below ten seconds with decimals. */
function formatDays(days) {
  const length = Math.abs(days) * DAY;
  return length < 10_000 ? `${(length / 1000).toPrecision(3)} s` : formatDuration(length);
}

function describeKernel(kernel, description) {
  const findReason = (part) => description.missing.find((missing) => missing.part === part)?.why;
  if (kernel === null) {
    const why = findReason("kernels") ?? "the model has no time encoding with a kernel";
    return `No kernel to draw: ${why}.`;
  }
  const kind = `${kernel.kind} at ${kernel.place}`;
  const stationarity = kernel.is_stationary
    ? `${kind}; stationary: psi depends only on the interval between two events.`
    : `${kind}; not stationary: psi is that of intervals from the first event of the training data.`;
  const why = kernel.initial_psi === null ? findReason("initial_kernels") : undefined;
  return why ? `${stationarity} Its form before training is not known: ${why}.` : stationarity;
}

/** @param {Kernel} kernel */
function describePsi(kernel) {
  const before = kernel.initial_psi === null ? "" : " Dashed: before training.";
  const formula = toFormula(kernel);
  if (formula === null) {
    const why = kernel.is_stationary
      ? "its rhythms do not reproduce it"
      : "a kernel that is not stationary is no sum of rhythms";
    return (
      `The ${kernel.psi.length} values of the API, joined by a line; psi may oscillate between them: ` +
      `${why}.${before}`
    );
  }
  return (
    "Points are the values of the API; the line is the mean, and the band the range, of the sum of " +
    `the rhythms within every pixel. ${formatPercent(formula.constant / kernel.psi[0])} of psi at ` +
    `interval 0 is constant.${before}`
  );
}

const describePsiPoint = (name, point) =>
  point.at === undefined
    ? [
        html`<span class="title">${name}</span>`,
        `${formatDays(point.from)} to ${formatDays(point.to)}`,
        `mean ${formatMetric(point.mean)}, from ${formatMetric(point.low)} to ${formatMetric(point.high)}`,
      ]
    : [html`<span class="title">${name}</span>`, formatDays(point.at), `psi ${formatMetric(point.psi)}`];

/** @param {Kernel} kernel */
function psiTable(kernel) {
  const { initial_psi: initial } = kernel;
  const rows = kernel.interval_days.map((days, index) => [
    formatDays(days),
    formatMetric(kernel.psi[index]),
    ...(initial === null ? [] : [formatMetric(initial[index])]),
  ]);
  const columns = ["Interval", "psi", ...(initial === null ? [] : ["Before training"])];
  return { caption: `psi of ${kernel.place}`, columns, rows };
}

/** @param {Kernel} kernel */
const toPsiRows = ({ interval_days, psi, initial_psi }) =>
  interval_days.map((days, index) => ({
    interval_days: days,
    psi: psi[index],
    ...(initial_psi === null ? {} : { initial_psi: initial_psi[index] }),
  }));

/** @param {Kernel} kernel */
const toRhythmRows = ({ spectrum, initial_spectrum }) =>
  [
    { trained: true, rhythms: spectrum },
    { trained: false, rhythms: initial_spectrum },
  ].flatMap(({ trained, rhythms }) =>
    (rhythms ?? []).map(({ period_days, power, share }) => ({ trained, period_days, power, share })),
  );

const MOST_NAMED = 3;

/** @param {Kernel} kernel */
function describeSpectrum(kernel) {
  if (kernel.spectrum === null) {
    return "This kernel is not stationary: its rhythms change with the instant, so it has no spectrum of fixed periods.";
  }
  const rhythms = drawableRhythms(kernel.spectrum);
  if (rhythms.length === 0) return "No rhythm has any power: the kernel is constant.";
  const strongest = rhythms
    .slice(0, MOST_NAMED)
    .map((rhythm) => `${formatPeriod(rhythm.period_days)} ${formatPercent(rhythm.share)}`);
  const before =
    kernel.initial_spectrum === null
      ? ""
      : " Circles: before training; a line joins each to its position after, paired in the order of periods.";
  return `Most power: ${strongest.join(", ")}, of ${rhythms.length} rhythms.${before}`;
}

/** @type {[string, number][]} */
const COMMON_PERIODS = [
  ["an hour", 1 / 24],
  ["a day", 1],
  ["a week", 7],
  ["a month", 365.25 / 12],
  ["a year", 365.25],
];
const TOLERANCE = 0.05;

/** A period in days, with the name of the common period that it is close to. */
function formatPeriod(period) {
  const days = Math.abs(period);
  const near = COMMON_PERIODS.find(([, common]) => Math.abs(days / common - 1) < TOLERANCE);
  return near === undefined ? formatDays(days) : `${near[0]} (${formatDays(days)})`;
}

/** @param {Rhythm} rhythm */
const describeRhythm = (name, rhythm) => [
  html`<span class="title">period ${formatDays(rhythm.period_days)}</span>`,
  name,
  `${formatPercent(rhythm.share)} of all power, ${rhythm.power.toPrecision(4)}`,
];

/** @param {Kernel} kernel */
function rhythmTable(kernel) {
  const caption = `Rhythms of ${kernel.place}`;
  const rhythms = drawableRhythms(kernel.spectrum);
  const pairs = rhythms.length > 0 && drawableRhythms(kernel.initial_spectrum).length > 0
    ? pairRhythms(kernel)
    : null;
  const formatPower = (power) => power.toPrecision(4);
  if (pairs === null) {
    const rows = rhythms.map(({ period_days: period, share, power }) => [
      formatDays(period),
      formatPercent(share),
      formatPower(power),
    ]);
    return { caption, columns: ["Period", "Share", "Power"], rows };
  }
  const rows = pairs.map(({ before, after }) => [
    formatDays(before.period_days),
    formatDays(after.period_days),
    (after.period_days / before.period_days).toFixed(4),
    formatPercent(before.share),
    formatPercent(after.share),
    formatPower(before.power),
    formatPower(after.power),
  ]);
  const columns = [
    "Period before",
    "Period after",
    "Ratio",
    "Share before",
    "Share after",
    "Power before",
    "Power after",
  ];
  return { caption, columns, rows };
}

// @ts-check
/** The cards "Champion against challenger" and "Clicks by version". */

import { cssColor } from "../shell/chart.js";
import { formatCount, formatMetric, formatPercent, formatSigned, pluralize } from "../shell/format.js";
import { html, nothing, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { ChartFigure, rowAxis } from "./chart_figure.js";
import {
  findComparingRun,
  groupByMetric,
  groupTestMetrics,
  rankersOf,
  referenceName,
  RUN_REFERENCES,
  TIME_IGNORED,
  TIME_READ,
} from "./data.js";
import { checksTable } from "./records_cards.js";
import { shortName } from "./versions_card.js";

/**
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./data.js").Run} Run
 */

export class ComparisonCard {
  #root;
  #choose;

  /**
   * @param {HTMLElement} root
   * @param {(version: string) => void} choose called with the version to compare with
   */
  constructor(root, choose) {
    this.#root = root;
    this.#choose = choose;
    this.#render("", "", nothing);
  }

  /**
   * Compares two versions, first by a run that measured both on the same questions.
   *
   * @param {Description} one
   * @param {{version: string | null, description: Description | null}} compared the version null where
   *   there is none to compare with, the description where it is not known
   * @param {Run[] | null} runs
   */
  show(one, { version, description: other }, runs) {
    if (other === null) {
      const sentence =
        version === null
          ? "There is no other version to compare with; train and publish one."
          : `${version} cannot be compared: its description could not be loaded.`;
      this.#render(one.version, sentence, nothing);
      return;
    }
    const run = findComparingRun(runs ?? [], one.version, other.version);
    const isSame = isSameTest(one, other);
    const separate = compareManifests(one, other, isSame);
    if (run === null) {
      const unknown = "Whether a retraining run measured both is not known: the runs could not be loaded.";
      this.#render(one.version, runs === null ? unknown : describeUnmeasured(isSame), separate);
      return;
    }
    const end = `ended as "${run.result}"${run.reason ? `: ${run.reason}` : ""}`;
    const sentence =
      `Measured on the same ${pluralize(run.questions ?? 0, "question")} of the same window by the ` +
      `retraining run ${run.run_id}, which ${end}.`;
    const note = isSame
      ? "According to the manifests, both tests are the same."
      : "Their test windows differ, so these values are not comparable.";
    const content = html`
      ${compareInRun(run, one.version, other.version)}
      ${run.decision ? html`<h3>Decision of the gate</h3>${checksTable(run.decision)}` : nothing}
      <h3>Metrics of each version's own test</h3>
      <p class="note">${note}</p>
      ${separate}`;
    this.#render(one.version, sentence, content);
  }

  /**
   * @param {string} version
   * @param {string} sentence
   * @param {any} content
   */
  #render(version, sentence, content) {
    const choose = ({ target }) => this.#choose(target.value);
    render(
      html`
        <div class="heading-row">
          <h2 id="comparison-heading">Champion against challenger</h2>
          <div class="controls">
            <label><span class="id" id="comparison-name">${version}</span> compared with
              <select id="compare" @change=${choose}></select></label>
            <div class="take-away"></div>
          </div>
        </div>
        <p class="note">The test metrics of two versions side by side.</p>
        <p id="comparison-summary" class="explanation">${sentence}</p>
        <div id="comparison">${content}</div>`,
      this.#root,
    );
  }
}

/** @param {boolean} isSame whether the manifests describe the same test */
function describeUnmeasured(isSame) {
  const rest = isSame
    ? "their data windows, numbers of questions and reference rankings agree, so the questions were " +
      "probably the same, but no interval shows how much of a difference is chance."
    : "their test windows differ, so they are not comparable.";
  return `No retraining run measured these two on the same questions: ${rest}`;
}

/**
 * Whether two manifests describe the same test: window, events, split, and the metrics of the references
 * that both hold.
 *
 * @param {Description} one
 * @param {Description} other
 */
function isSameTest({ manifest: one }, { manifest: other }) {
  const named = ({ metrics }) =>
    [...groupTestMetrics(metrics).metrics].flatMap(([name, { references }]) =>
      references.map(([reference, value]) => ({ name: `${reference}_${name}`, value })),
    );
  // An older manifest holds fewer references.
  const held = new Set(named(one).map(({ name }) => name));
  const common = new Set(named(other).map(({ name }) => name).filter((name) => held.has(name)));
  const describe = (manifest) =>
    JSON.stringify([
      manifest.data_window,
      manifest.counts,
      manifest.provenance.recipe?.split ?? null,
      manifest.metrics.questions ?? null,
      named(manifest).filter(({ name }) => common.has(name)),
    ]);
  return one.metrics.questions !== undefined && describe(one) === describe(other);
}

/**
 * @param {Run} run
 * @param {string} one
 * @param {string} other
 */
function compareInRun(run, one, other) {
  const [mine, theirs] = rankersOf(run, one);
  const rows = [...groupByMetric(run.metrics)].flatMap(([metric, rankers]) =>
    ["", "_withheld"]
      .filter((suffix) => rankers[mine + suffix] !== undefined)
      .map((suffix) => [
        metric,
        (suffix === "" ? TIME_READ : TIME_IGNORED).toLowerCase(),
        ...formatPair(rankers[mine + suffix], rankers[theirs + suffix] ?? null),
        ...RUN_REFERENCES.map((reference) => formatMetric(rankers[reference])),
      ]),
  );
  const columns = [
    "Metric",
    "Measured",
    `${shortName(one)}, ${mine}`,
    `${shortName(other)}, ${theirs}`,
    "Difference",
    ...RUN_REFERENCES.map(referenceName),
  ];
  return scrollTable("Metrics on the same questions", columns, rows, "compared");
}

/**
 * @param {Description} one
 * @param {Description} other
 * @param {boolean} isSame
 */
function compareManifests(one, other, isSame) {
  const [mine, theirs] = [one, other].map(({ manifest }) => groupTestMetrics(manifest.metrics).metrics);
  const rows = [...mine].flatMap(([metric, values]) => {
    const others = theirs.get(metric);
    if (others === undefined) return [];
    return [
      [metric, TIME_READ.toLowerCase(), ...formatPair(values.given, others.given)],
      ...(values.live === null || others.live === null
        ? []
        : [[metric, `${TIME_READ.toLowerCase()}, live popularity`, ...formatPair(values.live, others.live)]]),
      [metric, TIME_IGNORED.toLowerCase(), ...formatPair(values.withheld, others.withheld)],
    ];
  });
  if (rows.length === 0) return html`<p class="note">Their manifests share no test metric.</p>`;
  const columns = ["Metric", "Measured", shortName(one.version), shortName(other.version), "Difference"];
  const className = isSame ? "compared" : "compared apart";
  return scrollTable("Metrics of each version's own test", columns, rows, className);
}

const formatPair = (mine, theirs) => [
  formatMetric(mine),
  formatMetric(theirs),
  mine === null || theirs === null ? "–" : formatSigned(mine - theirs, 4),
];

const scrollTable = (caption, columns, rows, className) =>
  scrollRegion(table({ caption, columns, rows, className }), caption);

const NONE = "no recommendations recorded";

export class ClicksCard {
  figure;

  /** @param {HTMLElement} root */
  constructor(root) {
    const template = html`
      <div class="heading-row"><h2 id="clicks-heading">Clicks by version</h2><div class="take-away"></div></div>
      <p class="note">The share of recommendations that led to an event with one of their items.</p>
      <figure id="clicks-figure"></figure>`;
    render(template, root);
    this.figure = new ChartFigure(/** @type {any} */ (root.querySelector("figure")), "clicks");
  }

  /**
   * Draws the click rates of the versions that are described; resolves once they are drawn.
   *
   * @param {Model[]} models newest first
   * @param {Map<string, Description | null>} descriptions
   */
  async show(models, descriptions) {
    const rows = models.flatMap(({ version }) => {
      const clicks = descriptions.get(version)?.clicks;
      return clicks ? [{ version, ...clicks }] : [];
    });
    if (rows.length === 0) {
      await this.figure.show({ why: whyNoClicks(descriptions) });
      return;
    }
    await this.figure.show({
      summary:
        "The share of stored recommendations with a click, with its 95 % Wilson interval: " +
        `${rows.map(summarizeRow).join("; ")}. Versions serve different customers at different times: ` +
        "compare a current version only with its challenger of the same time.",
      content: {
        caption: "Click-through by version",
        columns: ["Version", "Shown", "Clicked", "Rate", "95 % interval"],
        rows: rows.map((row) => [
          row.version,
          formatCount(row.shown),
          formatCount(row.clicked),
          row.rate === null ? NONE : formatPercent(row.rate),
          row.rate === null ? "–" : formatInterval(row),
        ]),
      },
      rows: rows.length,
      build: () => drawClicks(rows),
      describePoint: ({ pointNumber }) => describeRow(rows[pointNumber]),
    });
  }
}

/** @param {Map<string, Description | null>} descriptions */
function whyNoClicks(descriptions) {
  const missing = [...descriptions.values()]
    .flatMap((description) => description?.missing ?? [])
    .find((one) => one.part === "clicks");
  return missing ? `No click rates: ${missing.why}.` : "No version is described yet.";
}

const formatInterval = ({ rate_low, rate_high }) => `${formatPercent(rate_low)} to ${formatPercent(rate_high)}`;

const summarizeRow = (row) =>
  row.rate === null
    ? `${shortName(row.version)} ${NONE}`
    : `${shortName(row.version)} ${formatPercent(row.rate)} of ${pluralize(row.shown, "recommendation")} ` +
      `(${formatInterval(row)})`;

const describeRow = (row) =>
  row.rate === null
    ? [row.version, NONE]
    : [
        row.version,
        `${formatCount(row.clicked)} of ${pluralize(row.shown, "recommendation")} clicked`,
        `${formatPercent(row.rate)}, ${formatInterval(row)}`,
      ];

function drawClicks(rows) {
  const rates = rows.map(({ rate }) => rate ?? 0);
  const highest = Math.max(...rows.map(({ rate_high: high }) => high ?? 0), 0.01);
  return {
    traces: [
      {
        type: "bar",
        orientation: "h",
        x: rates,
        y: rows.map((_, row) => row),
        width: 0.5,
        marker: { color: cssColor("--bar") },
        error_x: {
          type: "data",
          symmetric: false,
          array: rows.map(({ rate_high: high }, row) => (high ?? 0) - rates[row]),
          arrayminus: rows.map(({ rate_low: low }, row) => rates[row] - (low ?? 0)),
          color: cssColor("--text"),
          thickness: 1.5,
          width: 4,
        },
      },
    ],
    layout: {
      margin: { l: 20, r: 20, t: 8, b: 46 },
      xaxis: {
        title: { text: "share of recommendations clicked" },
        tickformat: ".1~%",
        range: [0, Math.min(1, highest * 1.1)],
        nticks: 5,
      },
      yaxis: rowAxis(rows.map((row) => `${shortName(row.version)}, ${formatCount(row.shown)} shown`)),
      annotations: rows.flatMap(({ rate }, row) =>
        rate === null ? [{ x: 0, y: row, xanchor: "left", text: NONE, showarrow: false, xshift: 8 }] : [],
      ),
    },
  };
}

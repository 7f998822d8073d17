// @ts-check
/** The panels of the Operations page: which lines each draws, their units, and their limits. */

import { formatDuration, formatPercent } from "../shell/format.js";

/**
 * What a card or panel shows of its state. "unknown": a request for it failed; "forbidden": the key
 * may not read it.
 *
 * @typedef {"ok" | "watch" | "bad" | "unknown" | "forbidden"} Status
 */

/**
 * @typedef {object} Limit
 * @property {string} alert the Prometheus alert in docker/prometheus/alerts.yml
 * @property {number} bad the alert's limit; Infinity where the page cannot evaluate the alert
 * @property {number} watch
 *
 * @typedef {object} Line
 * @property {string} name
 * @property {(rates: import("./metrics.js").Rates) => number | null} compute null without data
 * @property {Limit} [limit]
 *
 * @typedef {object} PanelSpec
 * @property {string} id
 * @property {string} heading
 * @property {Line[]} lines the first one is the headline, unless `headline` is "longest"
 * @property {"longest"} [headline]
 * @property {(value: number | null) => string} format
 * @property {string} [axis] title of the vertical axis
 * @property {number} [scale] units of the axis per unit of the values
 * @property {boolean} [isLogarithmic]
 * @property {string} note
 */

/** Alerts look at five minutes and more, the page at one: it reacts earlier, with more false alarms. */
const limitOf = (alert, bad) => ({ alert, bad, watch: bad / 2 });

/** The limits of the alerts; a test holds them equal to docker/prometheus/alerts.yml. */
export const LIMITS = {
  failed: limitOf("KairosErrors", 0.01),
  unavailable: limitOf("KairosUnavailable", 0.05),
  shed: limitOf("KairosShedding", 1),
  slow: limitOf("KairosSlow", 0.5),
  late: limitOf("KairosEventsLate", 3600),
  // The alert also compares with yesterday, which the page has no data of: never "bad" here.
  fallback: { alert: "KairosFallbackJump", bad: Infinity, watch: 0.1 },
};

/**
 * Compares a value with its limit.
 *
 * @param {number | null} value
 * @param {Limit} limit
 * @returns {Status | null} null for no value
 */
export function computeStatus(value, limit) {
  if (value === null) return null;
  if (value > limit.bad) return "bad";
  return value > limit.watch ? "watch" : "ok";
}

/** @type {(Status | null)[]} */
const BY_SEVERITY = [null, "forbidden", "ok", "watch", "unknown", "bad"];

/**
 * How bad a status is, for comparisons: what is above that of "ok" needs attention.
 *
 * @param {Status | null} status
 */
export const severity = (status) => BY_SEVERITY.indexOf(status);

/**
 * @param {(Status | null)[]} statuses
 * @returns {Status | null}
 */
export const worstStatus = (statuses) => BY_SEVERITY[Math.max(0, ...statuses.map(severity))];

/** A limit as a sentence; `format` formats its numbers. */
function describeLimit({ alert, bad, watch }, format) {
  if (bad === Infinity) return `Limit: watch above ${format(watch)} (${alert}).`;
  return `Limit: bad above ${format(bad)}, watch above ${format(watch)} (${alert}).`;
}

const withDigits = (number, most) => number.toFixed(number >= 100 ? 0 : number >= 10 ? 1 : most);

/** A rate per second; a dash for null. */
export const formatRate = (rate) => (rate === null ? "–" : `${withDigits(rate, 2)}\u00a0/s`);

/** A share of 1 in percent; a dash for null. */
export const formatShare = (share) => (share === null ? "–" : formatPercent(share));

/** A duration in seconds, from microseconds to months; a dash for null. */
export function formatSeconds(seconds) {
  if (seconds === null) return "–";
  if (seconds < 0.9995) return `${withDigits(seconds * 1000, 1)}\u00a0ms`;
  return seconds < 60 ? `${withDigits(seconds, 2)}\u00a0s` : formatDuration(seconds * 1000);
}

const formatPlainRate = (rate) => `${rate}\u00a0/s`;
const formatPlainPercent = (share) => `${share * 100}\u00a0%`;

/** @typedef {Record<string, string>} Labels */

/**
 * Whether a request came from a client of the API: no probe, metrics or file of the dashboard.
 *
 * @param {Labels} labels
 */
export const isClientRequest = ({ route }) =>
  !/^\/(health\/|metrics$|v1\/metrics$|dashboard)/.test(route);

/** @param {Labels} labels */
const isRecommendation = ({ method, route }) =>
  method === "POST" && route === "/v1/recommendations";

export const REQUESTS = "http_requests_total";
export const REQUEST_SECONDS = "http_request_duration_seconds";
const RECOMMENDATIONS = "kairos_recommendations_total";
const EVENTS = "kairos_events_ingested_total";
const STAGES = ["history", "filter", "encode", "search", "explain"];

/** @returns {Line[]} */
const quantileLines = (metric, percentiles, where) =>
  percentiles.map((percentile) => ({
    name: `p${percentile}`,
    compute: (rates) => rates.quantile(percentile / 100, metric, where),
  }));

/** @returns {Line} */
const statusLine = (name, matches, limit) => ({
  name,
  limit,
  compute: (rates) => rates.share(REQUESTS, ({ status }) => matches(status), isClientRequest),
});

/** @returns {Line} */
const fallbackLine = (name, matches) => ({
  name,
  compute: (rates) => rates.share(RECOMMENDATIONS, ({ fallback }) => matches(fallback)),
});

/** @returns {Line} */
const rateLine = (name, metric, label) => ({
  name,
  compute: (rates) => rates.sum(metric, (labels) => labels[label] === name),
});

/** @type {PanelSpec[]} */
export const PANELS = [
  {
    id: "requests",
    heading: "Requests",
    lines: [{ name: "requests", compute: (rates) => rates.sum(REQUESTS, isClientRequest) }],
    format: formatRate,
    axis: "per second",
    note: "Without probes, metrics and the files of this dashboard.",
  },
  {
    id: "latency",
    heading: "Recommendation latency",
    lines: quantileLines(REQUEST_SECONDS, [99, 95, 50], isRecommendation).map((line) =>
      line.name === "p99" ? { ...line, limit: LIMITS.slow } : line,
    ),
    format: formatSeconds,
    axis: "ms",
    scale: 1000,
    note: `p99, estimated from buckets. ${describeLimit(LIMITS.slow, formatSeconds)}`,
  },
  {
    id: "failures",
    heading: "Error responses",
    lines: [
      statusLine("5xx without 503", (status) => /^5/.test(status) && status !== "503", LIMITS.failed),
      statusLine("503, unavailable", (status) => status === "503", LIMITS.unavailable),
      statusLine("429, rate limited", (status) => status === "429"),
      statusLine("other 4xx", (status) => /^4/.test(status) && status !== "429"),
    ],
    format: formatShare,
    axis: "% of requests",
    scale: 100,
    note:
      `5xx without 503. ${describeLimit(LIMITS.failed, formatPlainPercent)} ` +
      `503: ${describeLimit(LIMITS.unavailable, formatPlainPercent)}`,
  },
  {
    id: "shed",
    heading: "Shed requests",
    lines: [
      "inference",
      "share",
      "versions",
      "database_reads",
      "database_writes",
      "database_control",
    ].map((reason) => ({
      ...rateLine(reason, "kairos_shed_requests_total", "reason"),
      limit: LIMITS.shed,
    })),
    format: formatRate,
    axis: "per second",
    note:
      "Requests refused: for inference, beyond a caller's share of it, for named versions, for reads, writes and " +
      "control of the database. " +
      describeLimit(LIMITS.shed, formatPlainRate),
  },
  {
    id: "queue",
    heading: "Wait for an inference thread",
    lines: quantileLines("kairos_inference_queue_seconds", [99, 95, 50]),
    format: formatSeconds,
    axis: "ms",
    scale: 1000,
    note: "p99; part of the response time.",
  },
  {
    id: "stages",
    heading: "Latency by stage",
    lines: STAGES.map((stage) => ({
      name: stage,
      compute: (rates) =>
        rates.mean("kairos_stage_duration_seconds", (labels) => labels.stage === stage),
    })),
    headline: "longest",
    format: formatSeconds,
    axis: "ms, mean",
    scale: 1000,
    note: "Mean duration of each stage of a recommendation; the large figure is the longest.",
  },
  {
    id: "fallbacks",
    heading: "Fallback responses",
    lines: [
      {
        ...fallbackLine("any fallback", (fallback) => fallback !== "none"),
        limit: LIMITS.fallback,
      },
      fallbackLine("popular", (fallback) => fallback === "popular"),
      fallbackLine("no_history", (fallback) => fallback === "no_history"),
    ],
    format: formatShare,
    axis: "% of responses",
    scale: 100,
    note:
      `Share of recommendations. ${describeLimit(LIMITS.fallback, formatPlainPercent)} ` +
      "The comparison with yesterday is made by Prometheus only.",
  },
  {
    id: "events",
    heading: "Events received",
    lines: ["accepted", "duplicate", "rejected"].map((result) =>
      rateLine(result, EVENTS, "result"),
    ),
    format: formatRate,
    axis: "per second",
    note: "Accepted events; duplicates and rejected ones below.",
  },
  {
    id: "lag",
    heading: "Age of events on arrival",
    lines: quantileLines("kairos_event_lag_seconds", [50, 95]).map((line) =>
      line.name === "p50" ? { ...line, limit: LIMITS.late } : line,
    ),
    format: formatSeconds,
    isLogarithmic: true,
    note: `p50, of accepted events. ${describeLimit(LIMITS.late, formatSeconds)}`,
  },
  {
    id: "shadow",
    heading: "Overlap with the shadow",
    lines: [{ name: "overlap", compute: (rates) => rates.mean("kairos_shadow_overlap") }],
    format: formatShare,
    axis: "% of items",
    scale: 100,
    note: "Items that both versions recommend, as a mean share of all they recommend. A dash: no shadow.",
  },
];

/**
 * The values of all panels, by id: a number or null for each line.
 *
 * @param {import("./metrics.js").Rates} rates
 * @returns {Record<string, (number | null)[]>}
 */
export const measure = (rates) =>
  Object.fromEntries(PANELS.map(({ id, lines }) => [id, lines.map(({ compute }) => compute(rates))]));

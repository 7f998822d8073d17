/**
 * What is drawn: each panel's lines, how their figures are read from the rates, and the limits.
 *
 * The first line is the headline. `of(rates)` answers a number, or null where nothing happened that
 * it could be measured on; `say` writes it. A chart's axis has `scale` times the numbers.
 */

import { duration, perSecond, share } from "./figures.js";
import { limitInWords, LIMITS } from "./limits.js";

/** What callers ask for: no probes, no metrics, no files of this dashboard. */
export const isWork = ({ route }) => !/^\/(health\/|metrics$|v1\/metrics$|dashboard)/.test(route);

const isRecommendation = ({ method, route }) =>
  method === "POST" && route === "/v1/recommendations";

const aSecond = (rate) => `${rate}\u00a0/s`;
const inPercent = (part) => `${part * 100}\u00a0%`;

const REQUESTS = "http_requests_total";
const ANSWERS = "kairos_recommendations_total";
const EVENTS = "kairos_events_ingested_total";
const STAGES = ["history", "filter", "encode", "search", "explain"];

const quantiles = (metric, places, where) =>
  places.map((place) => ({
    name: `p${place}`,
    of: (rates) => rates.quantile(place / 100, metric, where),
  }));

const statuses = (name, isOne, limit) => ({
  name,
  limit,
  of: (rates) => rates.share(REQUESTS, ({ status }) => isOne(status), isWork),
});

const falling = (name, isOne) => ({
  name,
  of: (rates) => rates.share(ANSWERS, ({ fallback }) => isOne(fallback)),
});

const counting = (name, metric, label) => ({
  name,
  of: (rates) => rates.sum(metric, (labels) => labels[label] === name),
});

export const PANELS = [
  {
    id: "requests",
    heading: "Requests",
    lines: [{ name: "requests", of: (rates) => rates.sum(REQUESTS, isWork) }],
    say: perSecond,
    axis: "per second",
    note: "Without probes, metrics and the files of this dashboard.",
  },
  {
    id: "latency",
    heading: "Time of a recommendation",
    lines: quantiles("http_request_duration_seconds", [99, 95, 50], isRecommendation).map(
      (line) => (line.name === "p99" ? { ...line, limit: LIMITS.slow } : line),
    ),
    say: duration,
    axis: "ms",
    scale: 1000,
    note: `p99, estimated from buckets. ${limitInWords(LIMITS.slow, duration)}`,
  },
  {
    id: "failures",
    heading: "Failed and refused",
    lines: [
      statuses("5xx but 503", (status) => /^5/.test(status) && status !== "503", LIMITS.failed),
      statuses("503, turned away", (status) => status === "503", LIMITS.unavailable),
      statuses("429, too often", (status) => status === "429"),
      statuses("other 4xx", (status) => /^4/.test(status) && status !== "429"),
    ],
    say: share,
    axis: "% of requests",
    scale: 100,
    note:
      `5xx but 503. ${limitInWords(LIMITS.failed, inPercent)} ` +
      `503: ${limitInWords(LIMITS.unavailable, inPercent)}`,
  },
  {
    id: "shed",
    heading: "Shed because too much waited",
    lines: ["inference", "database"].map((reason) => ({
      ...counting(reason, "kairos_shed_requests_total", "reason"),
      limit: LIMITS.shed,
    })),
    say: perSecond,
    axis: "per second",
    note: `For the model; the database below. ${limitInWords(LIMITS.shed, aSecond)}`,
  },
  {
    id: "queue",
    heading: "Wait for the model",
    lines: quantiles("kairos_inference_queue_seconds", [99, 95, 50]),
    say: duration,
    axis: "ms",
    scale: 1000,
    note: "p99 of the wait for an inference thread; part of the time of an answer.",
  },
  {
    id: "stages",
    heading: "Where the time goes",
    lines: STAGES.map((stage) => ({
      name: stage,
      of: (rates) => rates.mean("kairos_stage_duration_seconds", (labels) => labels.stage === stage),
    })),
    headline: "longest",
    say: duration,
    axis: "ms, mean",
    scale: 1000,
    note: "The mean of each stage of an answer; the longest stands out.",
  },
  {
    id: "fallbacks",
    heading: "Answered without the model",
    lines: [
      { ...falling("any fallback", (fallback) => fallback !== "none"), limit: LIMITS.fallback },
      falling("popular", (fallback) => fallback === "popular"),
      falling("no_history", (fallback) => fallback === "no_history"),
    ],
    say: share,
    axis: "% of answers",
    scale: 100,
    note:
      `Share of recommendations. ${limitInWords(LIMITS.fallback, inPercent)} ` +
      "Whether it is twice yesterday's, only Prometheus knows.",
  },
  {
    id: "events",
    heading: "Events received",
    lines: ["accepted", "duplicate", "rejected"].map((result) => counting(result, EVENTS, "result")),
    say: perSecond,
    axis: "per second",
    note: "Accepted; duplicates and rejected ones below.",
  },
  {
    id: "lag",
    heading: "Age of events on arrival",
    lines: quantiles("kairos_event_lag_seconds", [50, 95]).map((line) =>
      line.name === "p50" ? { ...line, limit: LIMITS.late } : line,
    ),
    say: duration,
    isLogarithmic: true,
    note: `p50, of accepted events. ${limitInWords(LIMITS.late, duration)}`,
  },
  {
    id: "shadow",
    heading: "Overlap with the shadow",
    lines: [{ name: "overlap", of: (rates) => rates.mean("kairos_shadow_overlap") }],
    say: share,
    axis: "% of items",
    scale: 100,
    note: "Mean share of items that the shadow's answer has in common. None: no shadow is asked.",
  },
];

/** The figures of all panels, by id: a number or null for each line. */
export const measure = (rates) =>
  Object.fromEntries(PANELS.map(({ id, lines }) => [id, lines.map(({ of }) => of(rates))]));

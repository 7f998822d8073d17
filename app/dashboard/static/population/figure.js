/** One of the two pictures: curves with bands above, the histories behind each point beneath. */

import { cssColor, escapeText, withOpacity } from "../shell/chart.js";
import { styleColor } from "../widgets/series.js";
import { intervalAxis, intervalPosition } from "../widgets/time_axes.js";
import { bandOf, FEW } from "./curves.js";

const CURVES = { yaxis: [0.27, 1], counts: [0, 0.17] };
const HALF_A_LONE_BAND = 0.03;

/**
 * What both pictures have in common, so that they can be held against each other: the highest place a
 * curve or band reaches, the shortest and the longest interval.
 */
export function extentOf(lines, band) {
  const points = lines.flatMap(({ curve }) => [...curve.observed, ...curve.predicted]);
  const highest = lines.flatMap((line) =>
    ["observed", "predicted"].flatMap((view) => heights(line, view, band)),
  );
  return {
    highest: Math.max(...highest, 0.01) * 1.06,
    shortest: Math.min(...points.map((point) => point.interval)),
    longest: Math.max(...points.map((point) => point.interval)),
  };
}

/**
 * Draw the `view` ("observed" or "predicted") of lines, each `{curve, label, style, isOther, isShare}`:
 * those of the other version are dashed, with smaller points and no band. Answers `{traces, layout, drawn}`, with the
 * line behind every trace.
 */
export function figure(lines, view, band, extent, width) {
  const shown = lines.filter(({ curve }) => curve[view].length > 0);
  const bands = band === "none" ? [] : shown.filter((line) => !line.isOther);
  const traces = [
    ...bands.map((line) => bandTrace(line, view, band)),
    ...shown.map((line) => curveTrace(line, view)),
    ...shown.map((line) => countTrace(line, view)),
  ];
  return { traces, layout: layout(shown, view, extent, width), drawn: [...bands, ...shown, ...shown] };
}

function heights(line, view, band) {
  const points = line.curve[view];
  if (band === "none" || line.isOther) return points.map((point) => point.mean);
  return points.map((point) => bandOf(point, band, line.isShare)[1]);
}

function bandTrace({ curve, style, isShare }, view, kind) {
  const points = curve[view];
  const places = points.map((point) => intervalPosition(point.interval));
  const bands = points.map((point) => bandOf(point, kind, isShare));
  if (points.length === 1) {
    // A band of one point would have no width.
    places.splice(0, 1, places[0] - HALF_A_LONE_BAND, places[0] + HALF_A_LONE_BAND);
    bands.push(bands[0]);
  }
  return {
    name: "band",
    type: "scatter",
    mode: "lines",
    x: [...places, ...places.toReversed()],
    y: [...bands.map(([, high]) => high), ...bands.map(([low]) => low).toReversed()],
    fill: "toself",
    fillcolor: withOpacity(styleColor(style), 0.13),
    line: { width: 0 },
    hoverinfo: "skip",
  };
}

function curveTrace({ curve, label, style, isOther }, view) {
  const points = curve[view];
  const isFew = points.map((point) => point.count < FEW);
  return {
    name: escapeText(label),
    type: "scatter",
    mode: "lines+markers",
    x: points.map((point) => intervalPosition(point.interval)),
    y: points.map((point) => point.mean),
    line: { color: styleColor(style), width: isOther ? 1.5 : 2, dash: isOther ? "dash" : "solid" },
    marker: {
      color: styleColor(style),
      size: (view === "observed" ? 8 : 5) - (isOther ? 2 : 0),
      symbol: isFew.map((few) => (few ? `${style.symbol}-open` : style.symbol)),
      opacity: isFew.map((few) => (few ? 0.6 : 1)),
    },
  };
}

function countTrace({ curve, style }, view) {
  const points = curve[view];
  return {
    name: "histories",
    type: "scatter",
    mode: "markers",
    yaxis: "y2",
    x: points.map((point) => intervalPosition(point.interval)),
    y: points.map((point) => point.count),
    marker: { color: styleColor(style), size: 5, symbol: style.symbol },
  };
}

function layout(shown, view, extent, width) {
  const counts = shown.flatMap(({ curve }) => curve[view].map((point) => point.count));
  const line = { color: cssColor("--faint"), width: 1, dash: "dot" };
  return {
    xaxis: {
      ...intervalAxis(extent, width, "time since the last event (log)"),
      anchor: "y2",
    },
    yaxis: {
      title: { text: "weight" },
      tickformat: ".1~%",
      range: [0, extent.highest],
      domain: CURVES.yaxis,
    },
    yaxis2: {
      title: { text: "histories" },
      range: [0, Math.max(...counts, 2 * FEW) * 1.2],
      domain: CURVES.counts,
      nticks: 2,
    },
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y2", y0: FEW, y1: FEW, line }],
  };
}

/** The population view in words: tips, captions, tables, and why there is nothing to see. */

import { formatCount, formatDuration, formatPercent } from "../shell/format.js";
import { element } from "../shell/html.js";
import { ALL, FEW, standardError } from "./curves.js";

/** The name of a curve as a person reads it. */
export const labelOf = (name) => (name === ALL ? "all histories" : name);

/** What a point of a line says when it is pointed at. */
export function tipOf({ label, version, isOther }, point) {
  const error = standardError(point);
  return [
    element("span", { class: "title" }, label),
    isOther ? element("code", {}, version) : null,
    `${formatDuration(point.interval)} after the last event`,
    `mean ${formatPercent(point.mean)}${error === null ? "" : `, standard error ${formatPercent(error)}`}`,
    point.sd === null ? null : `standard deviation ${formatPercent(point.sd)}`,
    `over ${formatCount(point.count)} ${point.count === 1 ? "history" : "histories"}`,
    point.count < FEW ? "few: read with care" : null,
  ].filter((line) => line !== null);
}

const BANDS = {
  sem: "Bands are the standard error of the mean, to either side: how well the mean is known.",
  sd: "Bands are the standard deviation, to either side: how much histories differ.",
  none: "",
};

/** What both pictures have in common. */
export function bandNote(band, lines) {
  const first = lines.filter((line) => !line.isOther);
  const isClipped = first.some((line) => line.isShare);
  const ends = isClipped ? "cut off at 0 and 100 %" : "cut off at 0";
  const words = BANDS[band] ? `${BANDS[band].slice(0, -1)}; ${ends}.` : "";
  const compared = lines.some((line) => line.isOther) ? " The other version is dashed, with smaller points and no bands." : "";
  return `${words}${compared} Hollow points stand for fewer than ${FEW} histories.`.trim();
}

/** Where each line of a view begins and ends. */
export function summaryOf(lines, view) {
  return lines
    .filter(({ curve }) => curve[view].length > 0)
    .map(({ curve, label, version, isOther }) => {
      const [first, last] = [curve[view][0], curve[view].at(-1)];
      const whose = isOther ? `${label} of ${version}` : label;
      return curve[view].length === 1
        ? `${whose}: ${said(first)}`
        : `${whose}: from ${said(first)} to ${said(last)}`;
    })
    .join("; ");
}

const said = (point) => `${formatPercent(point.mean)} after ${formatDuration(point.interval)}`;

/** The points of a view, for a table. */
export function tableOf(lines, view) {
  const isCompared = lines.some((line) => line.isOther);
  const columns = ["Curve", "Time since", "Mean", "Standard error", "Standard deviation", "Histories"];
  const rows = lines.flatMap(({ curve, label, version }) =>
    curve[view].map((point) => {
      const error = standardError(point);
      const numbers = [
        formatDuration(point.interval),
        formatPercent(point.mean),
        error === null ? "–" : formatPercent(error),
        point.sd === null ? "–" : formatPercent(point.sd),
        formatCount(point.count),
      ];
      return isCompared ? [label, version, ...numbers] : [label, ...numbers];
    }),
  );
  return { columns: isCompared ? ["Curve", "Version", ...columns.slice(1)] : columns, rows };
}

/** Why a version has no curves, and how it would get them. */
export function whyNone(description) {
  const why = description.missing.find(({ part }) => part === "attention_profile")?.why;
  return (
    `${description.version} has no attention profile: ${why ?? "it holds no points"}. ` +
    "Models that attend get one when they are trained with profile_histories above 0 in the recipe."
  );
}

/** What is missing where there are no curves but that of all histories. */
export const NO_NAMES = {
  action: "No action has a curve of its own: the events this version was trained on have none.",
  category:
    "No category has a curve of its own: the items had none when this version was trained. " +
    "Import items with categories, then train again.",
};

/** The kernel view in words: tips, captions, tables, and why there is nothing to see. */

import { DAY, formatDuration, formatMetric, formatPercent } from "../shell/format.js";
import { element } from "../shell/html.js";
import { formulaOf, movesOf, sharesOf } from "./rhythms.js";

const NAMES = [
  ["an hour", 1 / 24],
  ["a day", 1],
  ["a week", 7],
  ["a month", 365.25 / 12],
  ["a year", 365.25],
];
const NEARLY = 0.05;
const MOST_NAMED = 3;

/** An interval or a period, given in days, such as "2 d 3 h"; in seconds where it is shorter. */
export const spanOf = (days) => {
  const length = Math.abs(days) * DAY;
  return length < 10_000 ? `${(length / 1000).toPrecision(3)} s` : formatDuration(length);
};

/** What a point of psi says when it is pointed at. */
export const psiTip = (name, point) =>
  point.at === undefined
    ? [
        element("span", { class: "title" }, name),
        `${spanOf(point.from)} to ${spanOf(point.to)}`,
        `mean ${formatMetric(point.mean)}, from ${formatMetric(point.low)} to ${formatMetric(point.high)}`,
      ]
    : [element("span", { class: "title" }, name), spanOf(point.at), `psi ${formatMetric(point.psi)}`];

/** What a rhythm says when it is pointed at. */
export const rhythmTip = (name, rhythm) => [
  element("span", { class: "title" }, `period ${spanOf(rhythm.period_days)}`),
  name,
  `${formatPercent(rhythm.share)} of all power, ${rhythm.power.toPrecision(4)}`,
];

/** What a kernel is, in a line. */
export function aboutKernel(kernel) {
  const kind = `${kernel.kind} at ${kernel.place}`;
  if (!kernel.is_stationary) {
    return `${kind}; it is not stationary: psi is that of intervals from the first event of a history.`;
  }
  return `${kind}; stationary: only the interval between two events counts.`;
}

/** How the picture of psi is to be read. */
export function psiCaption(kernel) {
  const before = kernel.initial_psi === null ? "" : " Dashed: before training.";
  const formula = formulaOf(kernel);
  if (formula === null) {
    const why = kernel.is_stationary
      ? "its rhythms do not reproduce it"
      : "a kernel that is not stationary has no such sum";
    return `Only at the ${kernel.psi.length} intervals the service tells, between which it may swing: ${why}.${before}`;
  }
  const share = formula.constant / kernel.psi[0];
  return (
    `Points are what the service tells; the line is the mean, and the band the range, of what the ` +
    `rhythms sum up to within every pixel. ${formatPercent(share)} of psi at no interval is constant.${before}`
  );
}

/** How the picture of the rhythms is to be read, or why there is none. */
export function spectrumCaption(kernel) {
  if (kernel.spectrum === null) {
    return "This kernel is not stationary: its rhythms change with the instant, so it has no spectrum of fixed periods.";
  }
  const shares = sharesOf(kernel.spectrum);
  if (shares.length === 0) return "No rhythm has any power: the kernel is constant.";
  const strongest = shares
    .slice(0, MOST_NAMED)
    .map((rhythm) => `${nameOf(rhythm.period_days)} ${formatPercent(rhythm.share)}`);
  const moved =
    kernel.initial_spectrum === null
      ? ""
      : " Circles: before training; a line leads from each to where it went, paired in the order of periods.";
  return `Most power: ${strongest.join(", ")}, of ${shares.length} rhythms.${moved}`;
}

/** A period by the unit it is close to, or in words. */
function nameOf(period) {
  const days = Math.abs(period);
  const near = NAMES.find(([, unit]) => Math.abs(days / unit - 1) < NEARLY);
  return near === undefined ? spanOf(days) : `${near[0]} (${spanOf(days)})`;
}

/** Why what was before training is not drawn; "" where it is. */
export const whyNoBefore = (description) =>
  description.missing.find(({ part }) => part === "initial_kernels")?.why ?? "";

/** Why a version has no kernels. */
export const whyNoKernels = (description) =>
  description.missing.find(({ part }) => part === "kernels")?.why ??
  "the model has no time encoding whose kernel could be drawn";

/** The points of psi, for a table. */
export function psiTable(kernel) {
  const isKnown = kernel.initial_psi !== null;
  const columns = ["Interval", "psi", ...(isKnown ? ["Before training"] : [])];
  const rows = kernel.interval_days.map((interval, place) => [
    spanOf(interval),
    formatMetric(kernel.psi[place]),
    ...(isKnown ? [formatMetric(kernel.initial_psi[place])] : []),
  ]);
  return { caption: `psi of ${kernel.place}`, columns, rows };
}

/** The rhythms, for a table: with what each was before training where that is known. */
export function rhythmTable(kernel) {
  const after = sharesOf(kernel.spectrum ?? []);
  const moves = movesOf(sharesOfOrNull(kernel.initial_spectrum), after);
  const caption = `rhythms of ${kernel.place}`;
  if (moves === null) {
    const rows = after.map((rhythm) => [spanOf(rhythm.period_days), share(rhythm), power(rhythm)]);
    return { caption, columns: ["Period", "Share", "Power"], rows };
  }
  const rows = moves.map((move) => [
    spanOf(move.before.period_days),
    spanOf(move.after.period_days),
    (move.after.period_days / move.before.period_days).toFixed(4),
    share(move.before),
    share(move.after),
    power(move.before),
    power(move.after),
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

const sharesOfOrNull = (rhythms) => (rhythms === null ? null : sharesOf(rhythms));
const share = (rhythm) => formatPercent(rhythm.share);
const power = (rhythm) => rhythm.power.toPrecision(4);

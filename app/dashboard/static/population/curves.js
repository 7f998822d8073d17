/** Attention profiles as curves: what the API tells point by point, put together. */

import { DAY } from "../shell/format.js";

/** The name of the curve of all histories, as the API has it. */
export const ALL = "";

/** Fewer histories than this are few: their mean says little. */
export const FEW = 10;

/**
 * The curves of a description of a version: that of all histories first, then those `by` action or
 * category, the most frequent first. Each is `{name, histories, observed, predicted}`, the points as
 * the API has them with `interval` in milliseconds; none where the version has no profile.
 */
export function curvesOf(description, by) {
  const curves = new Map();
  for (const point of description?.attention_profile ?? []) {
    if ((point.by !== by && point.by !== "all") || point.mean === null) continue;
    if (!curves.has(point.name)) {
      curves.set(point.name, { name: point.name, histories: 0, observed: [], predicted: [] });
    }
    const curve = curves.get(point.name);
    curve[point.view].push({ ...point, interval: point.interval_days * DAY });
    // Each history is asked once about when its next event came.
    if (point.view === "observed") curve.histories += point.count;
  }
  return [...curves.values()].sort(
    (one, other) => Number(other.name === ALL) - Number(one.name === ALL) || other.histories - one.histories,
  );
}

/** The names of two lists of curves, each once, in their order. */
export const namesOf = (curves, others) => [
  ...new Set([...curves, ...others].map((curve) => curve.name)),
];

/** Whether a version's weights are shares of one; those of models that modulate them are not. */
export function weighsShares(description) {
  const { encoder } = description.manifest.recommender;
  return !encoder.modulation && encoder.weights !== "free";
}

/** The standard error of a point's mean; null for one of a single history. */
export const standardError = ({ sd, count }) =>
  sd === null || count < 2 ? null : sd / Math.sqrt(count);

/**
 * From where to where a band goes around the mean of a point: `kind` is "sem" or "sd". No weight is
 * below 0, no share above 1, and so no band is.
 */
export function bandOf(point, kind, isShare) {
  const spread = (kind === "sd" ? point.sd : standardError(point)) ?? 0;
  const most = isShare ? 1 : Infinity;
  return [Math.max(0, point.mean - spread), Math.min(most, point.mean + spread)];
}

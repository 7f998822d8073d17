// @ts-check
/** Names of what the API returns about versions, in words. */

import { formatPercent } from "../shell/format.js";

/** @type {Record<string, string>} */
const RESULT_LABELS = {
  running: "running",
  promoted: "promoted",
  kept: "kept the champion",
  passed: "passed, in a dry run",
  failed: "failed",
  abandoned: "abandoned",
};

/** How a retraining run ended, in words. */
export const nameResult = (/** @type {string} */ result) => RESULT_LABELS[result] ?? result;

/**
 * The versions in use beside the current one, as text.
 *
 * @param {import("./data.js").Traffic} traffic
 */
export function describeTraffic({ challenger, share, shadow }) {
  const parts = [];
  if (challenger !== null) parts.push(`challenger ${challenger} serves ${formatPercent(share)} of the customers`);
  if (shadow !== null) parts.push(`shadow ${shadow} receives the same requests`);
  return parts.join(", ") || "no challenger, no shadow";
}

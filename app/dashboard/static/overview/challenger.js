// @ts-check
/** The card "Is the challenger better?": two versions on the same questions, and by clicks. */

import { describeModel, sendRequest } from "../shell/api.js";
import { formatMetric, formatPercent, formatSigned, pluralize } from "../shell/format.js";
import { html, nothing } from "../shell/html.js";
import { currentVersion, findComparingRun, rankersOf, TRAFFIC } from "../models/data.js";
import { nameResult } from "../models/words.js";
import { HEADLINE } from "./cards.js";

/**
 * @typedef {import("../models/data.js").Run} Run
 *
 * @typedef {object} Comparison
 * @property {string | null} challenger that serves a share of the customers; null where none does
 * @property {number} share of the customers
 * @property {string} one the challenger, or the newest version that a retraining run compared
 * @property {string} other the version that it is compared with
 * @property {Run | null} run that measured both on the same questions
 * @property {any[]} clicks of both, none where no challenger serves
 * @property {boolean} areThere whether both are published
 */

/**
 * Loads the comparison of the challenger with the current version, or the latest one of a retraining
 * run where no challenger serves.
 *
 * @returns {Promise<Comparison | null>} null where there is nothing to compare
 */
export async function loadComparison(models, { runs }) {
  const { challenger, share } = await sendRequest(TRAFFIC);
  const current = currentVersion(models);
  if (challenger !== null && current !== null) {
    const clicks = await Promise.all(
      [challenger, current].map(async (version) => (await describeModel(version)).clicks),
    );
    const run = findComparingRun(runs, challenger, current);
    return { challenger, share, one: challenger, other: current, run, clicks, areThere: true };
  }
  const run = runs.find(({ metrics }) => metrics?.champion !== undefined && metrics.challenger !== undefined);
  if (run === undefined) return null;
  const [one, other] = [run.candidate, run.champion];
  const areThere = [one, other].every((version) => models.some((model) => model.version === version));
  return { challenger, share, one, other, run, clicks: [], areThere };
}

/** @param {Comparison | null} comparison */
export function showComparison(comparison) {
  if (comparison === null) {
    return html`<p class="note">No challenger serves, and no retraining has compared two versions yet.</p>`;
  }
  const { challenger, share, one, other, run, clicks, areThere } = comparison;
  const fragment = new URLSearchParams({ version: one, compare: other });
  return html`
    <p>${
      challenger === null
        ? html`No challenger serves. The last retraining that compared two versions asked whether the new one is better:`
        : html`<code>${challenger}</code> serves ${formatPercent(share)} of the customers.`
    }</p>
    ${run === null
      ? html`<p>No retraining run measured the two on the same questions.</p>`
      : showRun(run, one)}
    ${clicks.length === 2 && clicks.every(Boolean) ? showClicks(clicks[0], clicks[1]) : nothing}
    <p class="note">${
      areThere
        ? html`<a href=${`models.html#${fragment}`}>Compare <code>${one}</code> with <code>${other}</code></a>,
            or both for one customer under <a href="customers.html">Customers</a>.`
        : "They are not both published, so they cannot be compared any further."
    }</p>`;
}

/**
 * @param {Run} run
 * @param {string} version compared with the other one of the run
 */
function showRun(run, version) {
  const { candidate, metrics, questions, decision, result } = run;
  const [one, other] = rankersOf(run, version).map((ranker) => metrics?.[ranker]?.[HEADLINE] ?? null);
  if (one === null || other === null) return html`<p>The run did not measure ${HEADLINE}.</p>`;
  // The gate's lower bound is that of the version which the run trained, for the metric that it names.
  const check = decision?.checks.find(({ name, sentence }) => name === "champion" && sentence.includes(HEADLINE));
  const bound = candidate === version ? (check?.value ?? null) : null;
  return html`<p><strong>${judge(one - other, bound)}</strong>
      ${HEADLINE} ${formatMetric(one)} against ${formatMetric(other)}
      on the same ${pluralize(questions ?? 0, "question")}${
        bound === null ? "" : `; the 95 % interval of the difference begins at ${formatSigned(bound, 4)}`
      }. The run: ${nameResult(result)}.</p>`;
}

/** A verdict on a difference, and its lower bound where it is known. */
function judge(difference, bound) {
  if (difference <= 0) return "No, it is not better.";
  if (bound === null) return "It is better on average; how much of that is chance is not known.";
  return bound > 0 ? "Yes, it is better." : "Better on average, but that may be chance.";
}

/** The shares of recommendations that led to a click, and whether their intervals lie apart. */
function showClicks(one, other) {
  if (one.rate === null || other.rate === null) {
    return html`<p>Clicks: too few recommendations so far to compare.</p>`;
  }
  const areApart = one.rate_low > other.rate_high || other.rate_low > one.rate_high;
  const verdict = areApart
    ? `${one.rate > other.rate ? "more" : "fewer"} than the current version`
    : "no difference beyond chance yet";
  const describe = ({ rate, shown }) => `${formatPercent(rate)} of ${pluralize(shown, "recommendation")}`;
  return html`<p>Clicks: ${describe(one)} against ${describe(other)}: ${verdict}.</p>`;
}

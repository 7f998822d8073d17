// @ts-check
/** The cards "Retraining runs" and "Audit trail", newest first. */

import { repeat } from "../shell/directives.js";
import { formatCount, formatInstant } from "../shell/format.js";
import { html, nothing, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { describeTraffic, nameResult } from "./words.js";
import { versionName } from "./versions_card.js";

/**
 * @typedef {import("./data.js").Change} Change
 * @typedef {import("./data.js").Decision} Decision
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./data.js").Run} Run
 */

const NOT_LOADED = "They could not be loaded.";

/**
 * Shows retraining runs; those that are open stay open.
 *
 * @param {HTMLElement} root
 * @param {Run[] | null} loaded newest first; null if they could not be loaded
 * @param {Model[]} models
 * @param {(candidate: string, champion: string) => string} linkTo returns the fragment that compares
 *   two versions
 */
export function showRuns(root, loaded, models, linkTo) {
  const runs = loaded ?? [];
  const published = new Set(models.map((model) => model.version));
  const isPublished = (/** @type {string | null} */ version) => version !== null && published.has(version);
  const item = (/** @type {Run} */ run) => html`
    <li><details data-run=${run.run_id}>
      <summary>
        <span class=${`result ${run.result}`}>${nameResult(run.result)}</span>
        ${formatInstant(Date.parse(run.started_at)).slice(0, 16)} UTC
        ${run.reason ? html`<span class="note block">${run.reason}</span>` : nothing}
      </summary>
      ${runFacts(run)}
      ${isPublished(run.candidate) && isPublished(run.champion)
        ? html`<p><a href=${linkTo(String(run.candidate), String(run.champion))}>Compare the two</a></p>`
        : nothing}
      ${run.decision ? checksTable(run.decision) : nothing}
    </details></li>`;
  const none = loaded === null ? NOT_LOADED : "No retraining has run yet; start one with kairos retrain.";
  render(
    html`
      <div class="heading-row"><h2 id="runs-heading">Retraining runs</h2><div class="take-away"></div></div>
      <p class="note">The decision of each retraining run, and the gate's checks.</p>
      <p id="runs-note" class="note">${runs.length === 0 ? none : ""}</p>
      <ul id="runs" class="runs">${repeat(runs, (run) => run.run_id, item)}</ul>`,
    root,
  );
}

/** @param {Run} run */
const runFacts = (run) => html`
  <dl class="pairs">
    <dt>Run</dt><dd><code>${run.run_id}</code></dd>
    <dt>Champion</dt><dd>${versionName(run.champion)}</dd>
    <dt>Candidate</dt><dd>${versionName(run.candidate)}</dd>
    <dt>Recipe</dt><dd>${run.recipe ?? "–"}</dd>
    <dt>Questions</dt><dd>${run.questions === null ? "–" : formatCount(run.questions)}</dd>
    <dt>Finished</dt><dd>${
      run.finished_at === null ? "–" : `${formatInstant(Date.parse(run.finished_at))} UTC`
    }</dd>
  </dl>`;

/**
 * The checks of a gate's decision, as a table.
 *
 * @param {Decision} decision
 */
export function checksTable({ promote, checks }) {
  const caption = promote ? "Every check passed" : "The gate refused";
  const content = table({
    className: "checks",
    caption,
    columns: ["Check", "Passed", "Value", "Threshold", "Explanation"],
    rows: checks.map((check) => [
      html`<code>${check.name}</code>`,
      html`<span class=${check.passed ? "passed" : "refusal"}>${check.passed ? "✓ yes" : "✗ no"}</span>`,
      formatPrecise(check.value),
      formatPrecise(check.threshold),
      check.sentence,
    ]),
  });
  return scrollRegion(content, caption);
}

const formatPrecise = (number) => (number === null ? "–" : String(Number(number.toPrecision(4))));

/**
 * Shows the audit trail.
 *
 * @param {HTMLElement} root
 * @param {Change[] | null} loaded newest first; null if they could not be loaded
 */
export function showTrail(root, loaded) {
  const changes = loaded ?? [];
  const none = loaded === null ? NOT_LOADED : "No change is recorded yet.";
  const content = table({
    className: "trail",
    caption: "Audit trail, newest first",
    columns: ["When (UTC)", "Actor", "Change", "From", "To", "Reason"],
    rows: changes.map((change) => [
      formatInstant(Date.parse(change.at)),
      html`<span class="title">${change.actor}</span>`,
      change.change,
      versionName(change.previous_version),
      change.change === "traffic" && change.traffic !== null
        ? describeTraffic(change.traffic)
        : versionName(change.version),
      html`<span class="title">${change.reason ?? "–"}</span>`,
    ]),
  });
  render(
    html`
      <div class="heading-row"><h2 id="trail-heading">Audit trail</h2><div class="take-away"></div></div>
      <p class="note">Activations, rollbacks and traffic changes, newest first.</p>
      <p id="trail-note" class="note">${changes.length === 0 ? none : ""}</p>
      <div id="trail">
        ${changes.length === 0 ? nothing : scrollRegion(content, "Audit trail")}
      </div>`,
    root,
  );
}

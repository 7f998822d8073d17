// @ts-check
/** The cards of the Overview page. */

import { formatDay, formatInstant, formatMetric, formatPercent, pluralize } from "../shell/format.js";
import { html, nothing } from "../shell/html.js";
import { describeFaults } from "../shell/readiness.js";
import { groupTestMetrics, referenceName } from "../models/data.js";
import { describeTraffic, nameResult } from "../models/words.js";

export const HEADLINE = "ndcg@10";

/** Whether the service is ready, and which of its parts are not. */
export function showReadiness(readiness) {
  const isReady = readiness.status === "ready";
  return html`<p class="headline">
      <span class=${`state ${isReady ? "ok" : "bad"}`}>${isReady ? "ready" : "not ready"}</span>
      ${isReady ? "It answers requests." : nothing}
      ${describeFaults(readiness)}
    </p>
    <p class="note"><a href="health.html">Rates, latencies and failures</a> are under Operations.</p>`;
}

/** The served version, its metric beside those of simple rankings, and its lift over the best. */
export function showServing(answer) {
  if (answer === null) {
    return html`<p>No model serves yet. Train one with <code>kairos retrain</code>.</p>`;
  }
  const { manifest, served } = answer;
  const { version, trained_at: trainedAt, data_window: dataWindow } = served;
  const { metrics, questions } = groupTestMetrics(manifest.metrics);
  const name = metrics.has(HEADLINE) ? HEADLINE : [...metrics.keys()][0];
  const of = name === undefined ? undefined : metrics.get(name);
  return html`<p class="headline"><a href=${`models.html#${new URLSearchParams({ version })}`}>Version</a>
      <code>${version}</code>, trained ${formatDay(Date.parse(trainedAt))}
      on events until ${formatDay(Date.parse(dataWindow.last_at))}.</p>
    ${of === undefined
      ? html`<p class="note">Its manifest holds no test metrics.</p>`
      : showMetric(name, of, questions)}`;
}

function showMetric(name, { given, live, withheld, references }, questions) {
  // With popularity counted up to each query the model compares with what counts likewise.
  const own = live ?? given;
  const rivals = references.map(([reference, value]) => ({ label: referenceName(reference), value, kind: "other" }));
  rivals.sort((one, other) => other.value - one.value);
  const best = rivals[0];
  const rows = [
    { label: "This model", value: own, kind: "own" },
    ...(withheld === null ? [] : [{ label: "… ignoring elapsed time", value: withheld, kind: "own" }]),
    ...rivals,
  ];
  const most = Math.max(...rows.map((row) => row.value), 1e-9);
  const lift = best === undefined || best.value === 0 ? null : own / best.value - 1;
  return html`<p>${
      lift === null
        ? nothing
        : html`<strong>${lift >= 0 ? `${formatPercent(lift)} better` : `${formatPercent(-lift)} worse`}</strong>
            than the best simple ranking (${best.label.toLowerCase()}).`
    }</p>
    <table class="bars">
      <caption class="note">${name}${questions === null ? "" : ` on ${pluralize(questions, "test question")}`}:
        how high the items chosen next stand in the list, from 0 to 1</caption>
      <tbody>${rows.map(
        ({ label, value, kind }) => html`<tr><th scope="row">${label}</th>
          <td class="number">${formatMetric(value)}</td>
          <td class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect class=${kind} x="0" y="0" height="10" width=${(100 * Math.max(0, value)) / most}></rect></svg></td></tr>`,
      )}</tbody>
    </table>`;
}

/** Customers whose items differ most between two instants; each opens with both compared. */
export function showChanging({ users, at, until, compared_users: compared }) {
  if (users.length === 0) {
    return html`<p class="note">No customer with events before ${formatDay(Date.parse(at))} to compare.</p>`;
  }
  if (users.every(({ change }) => change === 0)) {
    return html`<p>The lists of ${pluralize(compared, "customer")} are the same on ${formatDay(Date.parse(at))} and
      ${formatDay(Date.parse(until))}: time alone changes nothing for this model.</p>`;
  }
  const link = ({ user_id: user }) =>
    `customers.html#${new URLSearchParams({ user, query_time: until, compare_time: at, exclude_seen: "true" })}`;
  return html`<p class="note">Of ${pluralize(compared, "customer")}, between ${formatDay(Date.parse(at))} and
      ${formatDay(Date.parse(until))}. A customer opens with both lists side by side.</p>
    <table>
      <thead><tr><th scope="col">Customer</th><th scope="col" class="number">List changed</th>
        <th scope="col" class="number">Items entered</th><th scope="col" class="number">New events</th></tr></thead>
      <tbody>${users.map(
        (user) => html`<tr>
          <td><a class="id" href=${link(user)}>${user.user_id}</a></td>
          <td class="number">${formatPercent(user.change)}</td>
          <td class="number">${user.entered} of 10</td>
          <td class="number">${user.events_between}</td></tr>`,
      )}</tbody>
    </table>`;
}

/** The last retraining. */
export function showRun({ runs: [run] }) {
  return run === undefined
    ? html`<p class="note">No retraining has run yet; start one with <code>kairos retrain</code>.</p>`
    : html`<p>Last retraining: <strong>${nameResult(run.result)}</strong>, ${formatInstant(Date.parse(run.started_at)).slice(0, 16)} UTC.
        ${run.reason ? html`<span class="note">${run.reason}</span>` : nothing}</p>`;
}

/** The newest changes of the served versions. */
export function showLatest({ changes }) {
  return html`<ul class="changes">${changes.map(
      ({ at, change, version, actor, traffic }) => html`<li>
        <span class="note">${formatInstant(Date.parse(at)).slice(0, 16)}</span>
        ${change === "traffic" && traffic !== null
          ? html`traffic: ${describeTraffic(traffic)}`
          : html`${change} <code>${version ?? ""}</code>`} <span class="note">by ${actor}</span></li>`,
    )}</ul>
    <p class="note"><a href="models.html">All versions, runs and the audit trail</a> are under Model.</p>`;
}

// @ts-check
/** The card "Versions": every version with its roles, training data and headline metrics. */

import { repeat } from "../shell/directives.js";
import {
  formatCount,
  formatDay,
  formatInstant,
  formatMetric,
  formatPercent,
  pluralize,
} from "../shell/format.js";
import { html, nothing, render } from "../shell/html.js";
import { scrollRegion } from "../shell/tables.js";
import { groupTestMetrics, HEADLINE_REFERENCES, referenceName, TIME_IGNORED } from "./data.js";

/**
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./data.js").ModelsState} ModelsState
 * @typedef {import("./data.js").Traffic} Traffic
 *
 * @typedef {object} VersionsTable
 * @property {ModelsState} serving
 * @property {Map<string, Description | null>} descriptions by version; others show the list's metrics
 * @property {string | null} chosen the version in detail
 * @property {string[]} requested the versions of the link, which may not be published
 * @property {string} metric
 * @property {number} undescribed how many versions are not described yet
 */

export class VersionsCard {
  #root;
  #handlers;

  /**
   * @param {HTMLElement} root
   * @param {object} handlers
   * @param {(version: string) => void} handlers.activate
   * @param {() => void} handlers.describeRest
   * @param {(version: string) => string} handlers.linkTo returns the fragment that shows a version
   */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    this.#render(null);
  }

  /** @param {VersionsTable} shown */
  show(shown) {
    const focused = document.activeElement;
    const version = this.#root.contains(focused) ? focused?.closest("tr")?.dataset.version : undefined;
    this.#render(shown);
    // A version that became current has no button any more: focus its link.
    if (version === undefined || this.#root.contains(document.activeElement)) return;
    const rows = [...this.#root.querySelectorAll("tr")];
    rows.find((row) => row.dataset.version === version)?.querySelector("a")?.focus();
  }

  #render(/** @type {VersionsTable | null} */ shown) {
    const rest = shown?.undescribed ?? 0;
    render(
      html`
        <div class="heading-row"><h2 id="versions-heading">Versions</h2><div class="take-away"></div></div>
        <p class="note">The published bundles, with the test metrics measured at their training.</p>
        <p id="versions-note" class="note">${shown && describeList(shown)}</p>
        <div id="versions">${shown && scrollRegion(this.#table(shown), "Published versions")}</div>
        <div class="buttons">
          <button id="describe-rest" type="button" ?hidden=${rest === 0} @click=${this.#handlers.describeRest}>
            Describe ${pluralize(rest, "older version")}</button>
        </div>`,
      this.#root,
    );
  }

  #table(/** @type {VersionsTable} */ shown) {
    const { serving, metric } = shown;
    return html`<table class="versions">
      <caption class="visually-hidden">Published versions, newest first</caption>
      <thead><tr>
        <th scope="col">Version</th>
        <th scope="col">Trained (UTC)</th>
        <th scope="col">Training data</th>
        <th scope="col" class="number">${metric}</th>
        <th scope="col" class="number">${TIME_IGNORED.toLowerCase()}</th>
        ${HEADLINE_REFERENCES.map((name) => html`<th scope="col" class="number">${referenceName(name)}</th>`)}
        <th scope="col" class="number">Questions</th>
        <th scope="col"><span class="visually-hidden">Change</span></th>
      </tr></thead>
      <tbody>${repeat(serving.models, ({ version }) => version, (model) => this.#row(model, shown))}</tbody>
    </table>`;
  }

  #row(/** @type {Model} */ model, /** @type {VersionsTable} */ { serving, descriptions, chosen, metric }) {
    const { version, refused } = model;
    const { activate, linkTo } = this.#handlers;
    const button = html`<button type="button" class="plain" aria-label=${`Activate ${version}…`}
      @click=${() => activate(version)}>Activate…</button>`;
    return html`<tr data-version=${version} aria-current=${version === chosen ? "true" : nothing}>
      <td>
        <div>
          ${refused === null
            ? html`<a href=${linkTo(version)}><code>${version}</code></a>`
            : html`<code>${version}</code>`}
          <span class="roles">${rolesOf(model, serving.traffic).map(
            (role) => html`<span class="role">${role}</span>`,
          )}</span>
          ${refused === null ? nothing : html`<p class="refusal">Refused: ${refused}</p>`}
        </div>
      </td>
      ${windowCells(model)}
      ${metricCells(model, descriptions.get(version) ?? null, metric)}
      <td>${model.is_current || refused !== null ? nothing : button}</td>
    </tr>`;
  }
}

/** @param {VersionsTable} shown */
function describeList({ serving: { models }, requested }) {
  if (models.length === 0) return "No version is published yet; make one with kairos train and kairos publish.";
  const missing = requested.filter((version) => !models.some((model) => model.version === version));
  if (missing.length > 0) {
    return `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not published here; another one is shown.`;
  }
  return "The metrics of one row are on the same test questions; those of different rows mostly are not.";
}

/** @param {Model} model */
function windowCells({ trained_at: trainedAt, data_window: window }) {
  if (trainedAt === null || window === null) return html`<td>–</td><td>–</td>`;
  const [first, last] = [window.first_at, window.last_at].map((at) => formatDay(Date.parse(at)));
  return html`<td>${formatInstant(Date.parse(trainedAt)).slice(0, 16)}</td><td>${first} to ${last}</td>`;
}

/**
 * @param {Model} model
 * @param {Description | null} description
 * @param {string} metric
 */
function metricCells(model, description, metric) {
  const { questions, metrics } = groupTestMetrics(description?.manifest.metrics ?? model.metrics ?? {});
  const values = metrics.get(metric);
  const references = new Map(values?.references ?? []);
  const texts = [
    formatMetric(values?.given),
    formatMetric(values?.withheld),
    ...HEADLINE_REFERENCES.map((reference) => formatMetric(references.get(reference))),
    questions === null ? "–" : formatCount(questions),
  ];
  return texts.map((text) => html`<td class="number">${text}</td>`);
}

/**
 * The roles of a version, as text.
 *
 * @param {Model | undefined} model
 * @param {Traffic | null} traffic null if the challenger's share is not known
 */
export function rolesOf(model, traffic) {
  const roles = [];
  if (model?.is_current) roles.push(model.is_serving ? "current" : "current, not serving here yet");
  else if (model?.is_serving) roles.push("serving here");
  if (traffic === null ? model?.is_challenger : model?.version === traffic.challenger) {
    roles.push(traffic === null ? "challenger" : `challenger, ${formatPercent(traffic.share)}`);
  }
  if (traffic === null ? model?.is_shadow : model?.version === traffic.shadow) roles.push("shadow");
  return roles;
}

/**
 * A version as code; "none" for null.
 *
 * @param {string | null} version
 */
export const versionName = (version) => (version === null ? "none" : html`<code>${version}</code>`);

/**
 * The digest at the end of a version's name, short enough for an axis.
 *
 * @param {string} version
 */
export const shortName = (version) => version.split("-").at(-1)?.slice(0, 8) || version;

/** All versions at a glance: what each does, what it learned from, how well it did. */

import { formatCount, formatDay, formatInstant, formatMetric } from "../shell/format.js";
import { byId, element, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { HEADLINE_REFERENCES, referenceName, testMetrics } from "./metrics.js";
import { roleBadge, rolesOf } from "./roles.js";

export class VersionsTable {
  #place = byId("versions");
  #activate;
  #linkTo;

  /** `activate(version)` is called for a click; `linkTo(version)` answers the address that shows one. */
  constructor({ activate, linkTo }) {
    this.#activate = activate;
    this.#linkTo = linkTo;
  }

  /** Show versions, the chosen one marked; of those without a description only what the list tells. */
  show({ models, traffic }, descriptions, { chosen, metric }) {
    const focused = this.#focused();
    const made = table({
      className: "versions",
      caption: "Published versions, newest first",
      columns: [
        "Version",
        "Trained (UTC)",
        "Learned from",
        `${metric} given`,
        "withheld",
        ...HEADLINE_REFERENCES.map(referenceName),
        "Questions",
        element("span", { class: "visually-hidden" }, "Change"),
      ],
      rows: models.map((model) => this.#row(model, traffic, descriptions.get(model.version), metric)),
    });
    render(scrollRegion(made, "Published versions"), this.#place);
    this.#place.querySelectorAll("tbody tr").forEach((row, place) => {
      row.dataset.version = models[place].version;
      if (models[place].version === chosen) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    });
    this.#focus(focused);
  }

  #row(model, traffic, description, metric) {
    const name = element(
      "div",
      {},
      model.refused === null
        ? element("a", { href: this.#linkTo(model.version) }, element("code", {}, model.version))
        : element("code", {}, model.version),
      element("span", { class: "roles" }, ...rolesOf(model, traffic).map(roleBadge)),
      model.refused === null ? null : element("p", { class: "refusal" }, `Refused: ${model.refused}`),
    );
    return [name, ...windowCells(model), ...metricCells(model, description, metric), this.#button(model)];
  }

  #button(model) {
    if (model.is_current || model.refused !== null) return "";
    const name = `Activate ${model.version}…`;
    const button = element("button", { type: "button", class: "plain", "aria-label": name }, "Activate…");
    button.addEventListener("click", () => this.#activate(model.version));
    return button;
  }

  #focused() {
    const focused = document.activeElement;
    const row = this.#place.contains(focused) ? focused.closest("tr") : null;
    return row && { version: row.dataset.version, tag: focused.tagName };
  }

  /** Back to where the focus was: the button of a version, or its link where it has none any more. */
  #focus(focused) {
    if (focused === null) return;
    const rows = [...this.#place.querySelectorAll("tr")];
    const row = rows.find((one) => one.dataset.version === focused.version);
    (row?.querySelector(focused.tag.toLowerCase()) ?? row?.querySelector("a"))?.focus();
  }
}

function windowCells({ trained_at: trainedAt, data_window: window }) {
  if (trainedAt === null) return ["–", "–"];
  const [first, last] = [window.first_at, window.last_at].map((at) => formatDay(Date.parse(at)));
  return [formatInstant(Date.parse(trainedAt)).slice(0, 16), `${first} to ${last}`];
}

function metricCells(model, description, metric) {
  const { questions, metrics } = testMetrics(description?.manifest.metrics ?? model.metrics ?? {});
  const told = metrics.get(metric);
  const references = new Map(told?.references ?? []);
  return [
    formatMetric(told?.given),
    formatMetric(told?.withheld),
    ...HEADLINE_REFERENCES.map((reference) => formatMetric(references.get(reference))),
    questions === null ? "–" : formatCount(questions),
  ];
}

// @ts-check
/** The card "Version details": test metrics, training, data windows and facts of one version. */

import { live } from "../shell/directives.js";
import { html, render } from "../shell/html.js";
import { ChartFigure } from "./chart_figure.js";
import { drawMetrics, drawTraining, drawWindows } from "./detail_charts.js";
import { factList, filesTable, recipe } from "./detail_facts.js";

/**
 * @typedef {import("./data.js").Description} Description
 * @typedef {import("./data.js").ModelsState} ModelsState
 */

export class DetailCard {
  #root;
  #handlers;
  figures;

  /**
   * @param {HTMLElement} root
   * @param {{chooseVersion: (version: string) => void, chooseMetric: (metric: string) => void}} handlers
   */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    this.#render(null);
    const figure = (/** @type {string} */ name, /** @type {string} */ heading) =>
      new ChartFigure(/** @type {any} */ (root.querySelector(`#${name}-figure`)), name, heading);
    this.figures = {
      metrics: figure("metrics", "Test metrics"),
      training: figure("training", "Training curves"),
      windows: figure("windows", "Data windows"),
    };
  }

  /**
   * Resolves once the charts are drawn.
   *
   * @param {Description} description
   * @param {ModelsState} serving
   * @param {string} metric
   * @param {string[]} metrics those to choose from
   */
  async show(description, serving, metric, metrics) {
    this.#render({ description, serving, metric, metrics });
    await Promise.all([
      this.figures.metrics.show(drawMetrics(description, metric)),
      this.figures.training.show(drawTraining(description)),
      this.figures.windows.show(drawWindows(serving.models, description.version)),
    ]);
  }

  #render(shown) {
    const { chooseVersion, chooseMetric } = this.#handlers;
    const option = (name) =>
      html`<option value=${name} .selected=${live(name === shown.metric)}>${name}</option>`;
    render(
      html`
        <div class="heading-row">
          <h2 id="detail-heading">Version details: <span id="detail-name" class="id">${
            shown?.description.version ?? "…"
          }</span></h2>
          <div class="controls">
            <label>Version
              <select id="version" @change=${({ target }) => chooseVersion(target.value)}></select></label>
            <label>Metric <select id="metric" @change=${({ target }) => chooseMetric(target.value)}>
              ${shown?.metrics.map(option)}
            </select></label>
          </div>
        </div>
        <p class="note">How the version was trained and measured, from its manifest.</p>
        <div class="halves">
          <figure id="metrics-figure"></figure>
          <figure id="training-figure"></figure>
          <figure id="windows-figure"></figure>
          <div>
            <h3>Facts</h3>
            <dl id="facts" class="pairs facts">${shown && factList(shown.description, shown.serving)}</dl>
            <details class="as-table"><summary>Recipe</summary>
              <pre id="recipe" tabindex="0">${shown && recipe(shown.description)}</pre></details>
            <details class="as-table"><summary>Files and their checksums</summary>
              <div id="files">${shown && filesTable(shown.description)}</div></details>
          </div>
        </div>`,
      this.#root,
    );
  }
}

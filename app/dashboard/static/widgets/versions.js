// @ts-check
/** Selects for published versions: one, or a pair to compare. */

import { describeModel } from "../shell/api.js";
import { byId, html, nothing, render } from "../shell/html.js";
import { showServedVersion } from "../shell/page.js";

/**
 * Fills a `<select>` with the readable versions.
 *
 * @param {HTMLSelectElement} select
 * @param {any[]} models as `GET /v1/models` lists them
 * @param {string | null} chosen null for the version that serves
 * @param {any} [first] an option before them
 * @returns {string | null} the version selected now; null if there is none
 */
export function fillVersionSelect(select, models, chosen, first = nothing) {
  const readable = models.filter((model) => model.refused === null);
  const option = (model) => html`<option value=${model.version}>${versionLabel(model)}</option>`;
  render([first, ...readable.map(option)], select);
  const serving = readable.find((model) => model.is_serving)?.version;
  const known = readable.some((model) => model.version === chosen) ? chosen : null;
  select.value = known ?? serving ?? readable[0]?.version ?? "";
  return select.value || null;
}

/**
 * Which versions of a link are not shown, because they are not published or cannot be read.
 *
 * @param {any[]} models
 * @param {{version: string | null, compare?: string | null}} linked
 * @returns {string} empty if all are shown
 */
export function describeMissing(models, { version, compare = null }) {
  const isMissing = (name) =>
    name !== null && !models.some((model) => model.refused === null && model.version === name);
  const say = (name, instead) => `Version ${name} is not published, or cannot be read; ${instead}.`;
  return [
    ...(isMissing(version) ? [say(version, "another one is shown")] : []),
    ...(isMissing(compare) ? [say(compare, "none is compared")] : []),
  ].join(" ");
}

/** A version with its roles in service, such as "20260101 (current)". */
export function versionLabel(model) {
  const roles = [
    model.is_current && "current",
    model.is_challenger && "challenger",
    model.is_shadow && "shadow",
  ].filter(Boolean);
  return roles.length ? `${model.version} (${roles.join(", ")})` : model.version;
}

/** @typedef {{version: string | null, compare: string | null}} Pair */

/** The selects `#version` and `#compare`, the note `#version-note` below them, and the descriptions of the versions chosen in them. */
export class VersionPair {
  #version = byId("version");
  #compare = byId("compare");
  #note = byId("version-note");
  /** @type {any[]} */
  #models = [];
  /** Promises of descriptions, by version. */
  #described = new Map();
  #latest = 0;

  /** @param {(chosen: Pair) => void} choose called when the user changes a select */
  constructor(choose) {
    this.#version.addEventListener("change", () => choose(this.show(this.#chosen)));
    this.#compare.addEventListener("change", () => choose(this.#chosen));
  }

  /** The published versions, newest first. */
  get models() {
    return this.#models;
  }

  /** Loads the published versions, and shows in the banner which one serves. */
  async open() {
    this.#models = await showServedVersion();
  }

  /**
   * Shows a pair; `version` null for the one that serves, `compare` null for none.
   *
   * @param {Pair} pair
   * @returns {Pair} what is selected now; both null if nothing is published
   */
  show({ version, compare }) {
    const shown = fillVersionSelect(this.#version, this.#models, version);
    const others = this.#models.filter((model) => model.version !== shown);
    fillVersionSelect(this.#compare, others, compare, html`<option value="">none</option>`);
    const options = /** @type {HTMLOptionElement[]} */ ([...this.#compare.options]);
    this.#compare.value = options.some((option) => option.value === compare) ? compare : "";
    this.#note.textContent = describeMissing(this.#models, { version, compare });
    this.#note.hidden = this.#note.textContent === "";
    return this.#chosen;
  }

  /**
   * The descriptions of a pair, null for none. Resolves to null if another pair was requested
   * meanwhile.
   *
   * @param {Pair} pair
   * @returns {Promise<any[] | null>}
   * @throws {Error} as `describeModel` does
   */
  async describe({ version, compare }) {
    this.#latest += 1;
    const own = this.#latest;
    const both = [version, compare].map((one) => (one === null ? null : this.#describe(one)));
    try {
      const descriptions = await Promise.all(both);
      return own === this.#latest ? descriptions : null;
    } catch (error) {
      if (own === this.#latest) throw error;
      return null;
    }
  }

  get #chosen() {
    return { version: this.#version.value || null, compare: this.#compare.value || null };
  }

  #describe(version) {
    if (!this.#described.has(version)) {
      const description = describeModel(version);
      description.catch(() => this.#described.delete(version));
      this.#described.set(version, description);
    }
    return this.#described.get(version);
  }
}

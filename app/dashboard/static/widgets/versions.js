/** Selects for published versions: one, or a pair to compare. */

import { describeModel } from "../shell/api.js";
import { byId, element } from "../shell/html.js";
import { showServedVersion } from "../shell/page.js";

/**
 * Offer versions, as `GET /v1/models` lists them, in a `<select>`; `chosen` may be null for the one
 * that serves. Answers the version that is selected then, or null where none is published.
 */
export function fillVersionSelect(select, models, chosen) {
  const readable = models.filter((model) => model.refused === null);
  select.replaceChildren(
    ...readable.map((model) => element("option", { value: model.version }, versionLabel(model))),
  );
  const serving = readable.find((model) => model.is_serving)?.version;
  const known = readable.some((model) => model.version === chosen) ? chosen : null;
  select.value = known ?? serving ?? readable[0]?.version ?? "";
  return select.value || null;
}

/** A version and what it does here. */
export function versionLabel(model) {
  const roles = [
    model.is_current && "current",
    model.is_challenger && "challenger",
    model.is_shadow && "shadow",
  ].filter(Boolean);
  return roles.length ? `${model.version} (${roles.join(", ")})` : model.version;
}

export class VersionPair {
  #version = byId("version");
  #compare = byId("compare");
  #models = [];
  /** Descriptions under way or there already, by version. */
  #described = new Map();
  #asked = 0;

  /** For the page's selects `#version` and `#compare`; `choose({version, compare})` on a change. */
  constructor(choose) {
    this.#version.addEventListener("change", () => choose(this.show(this.#chosen)));
    this.#compare.addEventListener("change", () => choose(this.#chosen));
  }

  /** The published versions, newest first. */
  get models() {
    return this.#models;
  }

  /** Ask which versions there are, and say which serves. */
  async open() {
    this.#models = await showServedVersion();
  }

  /**
   * Show a choice, `version` null for the one that serves and `compare` null for none; answers what
   * is chosen then, both null where nothing is published.
   */
  show({ version, compare }) {
    const shown = fillVersionSelect(this.#version, this.#models, version);
    const others = this.#models.filter((model) => model.version !== shown);
    fillVersionSelect(this.#compare, others, compare);
    this.#compare.prepend(element("option", { value: "" }, "none"));
    const isThere = [...this.#compare.options].some((option) => option.value === compare);
    this.#compare.value = isThere ? compare : "";
    return this.#chosen;
  }

  /**
   * The descriptions of what is chosen, null for none; null altogether where another choice was
   * made meanwhile. Throws what `describeModel` does.
   */
  async describe({ version, compare }) {
    this.#asked += 1;
    const own = this.#asked;
    const both = [version, compare].map((one) => (one === null ? null : this.#describe(one)));
    try {
      const answers = await Promise.all(both);
      return own === this.#asked ? answers : null;
    } catch (error) {
      if (own === this.#asked) throw error;
      return null;
    }
  }

  get #chosen() {
    return { version: this.#version.value || null, compare: this.#compare.value || null };
  }

  #describe(version) {
    if (!this.#described.has(version)) {
      const asked = describeModel(version);
      asked.catch(() => this.#described.delete(version));
      this.#described.set(version, asked);
    }
    return this.#described.get(version);
  }
}

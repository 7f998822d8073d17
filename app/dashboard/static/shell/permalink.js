// @ts-check
/** The state of a page, kept in the URL's fragment so that a link restores it. */

import { parseInstant } from "./instants.js";

/**
 * @typedef {object} Field one value of the state
 * @property {any} defaultValue left out of the fragment
 * @property {(text: string) => any} read parses the fragment's text; undefined if it is invalid
 * @property {(value: any) => string | null} write null leaves the value out
 */

/** Reads and writes the state of a page: values by name, those of the API where it has one. */
export class Permalink {
  #fields;

  /** @param {Record<string, Field>} fields */
  constructor(fields) {
    this.#fields = fields;
  }

  /**
   * The state of a fragment; missing and invalid values become their defaults.
   *
   * @returns {any} values by name
   */
  read(fragment = location.hash) {
    const query = new URLSearchParams(fragment.replace(/^#/, ""));
    return Object.fromEntries(
      Object.entries(this.#fields).map(([name, field]) => {
        const text = query.get(name);
        const value = text === null ? undefined : field.read(text);
        return [name, value === undefined ? field.defaultValue : value];
      }),
    );
  }

  /** The fragment of a state. */
  write(state) {
    const query = new URLSearchParams();
    for (const [name, field] of Object.entries(this.#fields)) {
      const [value, usual] = [state[name], field.defaultValue].map((one) =>
        one === null ? null : field.write(one),
      );
      if (value !== null && value !== usual) query.set(name, value);
    }
    return `#${query}`;
  }

  /** Writes a state into the address bar; with `isNavigation` as an entry that "back" leaves. */
  save(state, { isNavigation = false } = {}) {
    window.history[isNavigation ? "pushState" : "replaceState"](null, "", this.write(state));
  }
}

/**
 * A non-empty text.
 *
 * @param {string | null} [defaultValue]
 * @returns {Field}
 */
export const text = (defaultValue = null) => ({
  defaultValue,
  read: (text) => text || undefined,
  write: (value) => value,
});

/**
 * An instant, in milliseconds since 1970; in the fragment as RFC 3339.
 *
 * @param {number | null} [defaultValue]
 * @returns {Field}
 */
export const instant = (defaultValue = null) => ({
  defaultValue,
  read(text) {
    const at = parseInstant(text);
    return Number.isNaN(at) ? undefined : at;
  },
  write: (value) => new Date(value).toISOString(),
});

/**
 * An integer between two bounds, inclusive.
 *
 * @param {number} least
 * @param {number} most
 * @param {number | null} [defaultValue]
 * @returns {Field}
 */
export const integer = (least, most, defaultValue = null) => ({
  defaultValue,
  read(text) {
    const number = Number(text);
    return Number.isInteger(number) && number >= least && number <= most ? number : undefined;
  },
  write: String,
});

/**
 * A boolean.
 *
 * @returns {Field}
 */
export const flag = (defaultValue = false) => ({
  defaultValue,
  read: (text) => (text === "true" ? true : text === "false" ? false : undefined),
  write: String,
});

/**
 * One of several words; the first is the default.
 *
 * @param {...string} words
 * @returns {Field}
 */
export const choice = (...words) => ({
  defaultValue: words[0],
  read: (text) => (words.includes(text) ? text : undefined),
  write: (value) => value,
});

/**
 * A list of texts; null differs from an empty list.
 *
 * @param {string[] | null} [defaultValue]
 * @returns {Field}
 */
export const list = (defaultValue = null) => ({
  defaultValue,
  read(text) {
    try {
      const texts = JSON.parse(text);
      return Array.isArray(texts) ? texts.map(String) : undefined;
    } catch {
      return undefined;
    }
  },
  write: (value) => JSON.stringify(value),
});

/**
 * What the pages of a customer have in common: the values of a link to the same customer, point in time
 * and kind of list on another page.
 *
 * @returns {Record<string, string>} empty where no stored customer is shown
 */
export function customerValues({ user, query_time: at, exclude_seen: excludeSeen }) {
  if (user === null || at === null) return {};
  return { user, query_time: new Date(at).toISOString(), exclude_seen: String(excludeSeen) };
}

/** What a page shows, kept in the URL's fragment so that a link brings it back. */

/**
 * The state of a page: fields by the name they have in the fragment, which are those of the API
 * where it has one. Each field is one of the kinds below, with the value that goes without saying.
 */
export class Permalink {
  #fields;

  constructor(fields) {
    this.#fields = fields;
  }

  /** The state a fragment describes; whatever it leaves out or garbles has its default. */
  read(fragment = location.hash) {
    const query = new URLSearchParams(fragment.replace(/^#/, ""));
    return Object.fromEntries(
      Object.entries(this.#fields).map(([name, field]) => {
        const text = query.get(name);
        const value = text === null ? undefined : field.read(text);
        return [name, value === undefined ? field.byDefault : value];
      }),
    );
  }

  /** The fragment that describes a state. */
  write(state) {
    const query = new URLSearchParams();
    for (const [name, field] of Object.entries(this.#fields)) {
      const [value, usual] = [state[name], field.byDefault].map((one) =>
        one === null ? null : field.write(one),
      );
      if (value !== null && value !== usual) query.set(name, value);
    }
    return `#${query}`;
  }

  /** Let the address bar say a state; `isMove` for one that "back" should return from. */
  keep(state, { isMove = false } = {}) {
    window.history[isMove ? "pushState" : "replaceState"](null, "", this.write(state));
  }
}

/** A text, not empty. */
export const text = (byDefault = null) => ({
  byDefault,
  read: (said) => said || undefined,
  write: (value) => value,
});

/** An instant, in milliseconds since 1970; in the fragment as RFC 3339. */
export const instant = (byDefault = null) => ({
  byDefault,
  read: (said) => (Number.isNaN(Date.parse(said)) ? undefined : Date.parse(said)),
  write: (value) => new Date(value).toISOString(),
});

/** A whole number between two bounds. */
export const whole = (least, most, byDefault = null) => ({
  byDefault,
  read(said) {
    const number = Number(said);
    return Number.isInteger(number) && number >= least && number <= most ? number : undefined;
  },
  write: String,
});

/** True or false. */
export const flag = (byDefault = false) => ({
  byDefault,
  read: (said) => (said === "true" ? true : said === "false" ? false : undefined),
  write: String,
});

/** One of a few words; the first goes without saying. */
export const choice = (...words) => ({
  byDefault: words[0],
  read: (said) => (words.includes(said) ? said : undefined),
  write: (value) => value,
});

/** Several texts, in order; null is not the same as none. */
export const list = (byDefault = null) => ({
  byDefault,
  read(said) {
    try {
      const texts = JSON.parse(said);
      return Array.isArray(texts) ? texts.map(String) : undefined;
    } catch {
      return undefined;
    }
  },
  write: (value) => JSON.stringify(value),
});

/** What the kernel view shows, in the words of the API. */

import { choice, Permalink, text } from "../shell/permalink.js";

export const LINK = new Permalink({
  /** Null for the version that serves. */
  version: text(),
  compare: text(),
  /** Which time encoding, where a model has several; null for its first. */
  place: text(),
  scale: choice("log", "linear"),
  /** How much of the linear axis. */
  window: choice("week", "day", "60d", "year"),
  /** Whose intensities, of models that have some. */
  user: text(),
});

/** What the population view shows, in the words of the API. */

import { choice, list, Permalink, text } from "../shell/permalink.js";

export const LINK = new Permalink({
  /** Null for the version that serves. */
  version: text(),
  compare: text(),
  by: choice("action", "category"),
  /** Names of curves, "" for that of all histories; null for the most frequent ones. */
  names: list(),
  /** What the bands show: the standard error of the mean, or the standard deviation. */
  band: choice("sem", "sd", "none"),
});

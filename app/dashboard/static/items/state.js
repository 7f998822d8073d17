/** What the items view shows, in the words of the API. */

import { choice, flag, integer, list, Permalink, text } from "../shell/permalink.js";

/** How many items a map may hold; the service draws at most the last. */
export const MAP_SIZES = [200, 500, 1000, 2000, 5000, 10_000];

export const LINK = new Permalink({
  item: text(),
  /** Null for the version that serves. */
  model_version: text(),
  step: choice("week", "day", "month"),
  /** How many items the map holds. */
  items: integer(1, MAP_SIZES.at(-1), 2000),
  /** The categories that are shown on the map; null for all. */
  categories: list(),
  /** Whether items of rarer categories, and items of none, are shown on it. */
  other: flag(true),
  none: flag(true),
});

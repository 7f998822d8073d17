/** What the models view shows, in the words of the API. */

import { Permalink, text } from "../shell/permalink.js";

export const LINK = new Permalink({
  /** Null for the one that serves. */
  version: text(),
  /** Null for the one it was measured against, or else the current one. */
  compare: text(),
  metric: text("ndcg@10"),
});

/** What the user view shows, in the words of the API. */

import { choice, flag, instant, Permalink, text, whole } from "../shell/permalink.js";

export const COUNTS = [5, 10, 20, 50, 100];

export const LINK = new Permalink({
  user: text(),
  /** Null until the user's history tells when the last event was. */
  query_time: instant(),
  n: whole(1, 500, 10),
  exclude_seen: flag(true),
  query_time_withheld: flag(false),
  scale: choice("linear", "log"),
  /** A head's number from 1, or null for the mean over heads. */
  head: whole(1, 64),
});

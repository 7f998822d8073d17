/** What the user view shows, in the words of the API. */

import { choice, flag, instant, integer, Permalink, text } from "../shell/permalink.js";
import { pastedHistory } from "./pasted.js";

export const COUNTS = [5, 10, 20, 50, 100];

export const LINK = new Permalink({
  user: text(),
  /** A pasted history, as the API takes it, in place of a user. */
  history: pastedHistory(),
  /** Null until the history tells when the last event was. */
  query_time: instant(),
  n: integer(1, 500, 10),
  exclude_seen: flag(true),
  query_time_withheld: flag(false),
  scale: choice("linear", "log"),
  /** A head's number from 1, or null for the mean over heads. */
  head: integer(1, 64),
  speed: choice("medium", "slow", "fast"),
  /** The item whose score events are left out of, or null for none. */
  explain_item_id: text(),
});

/** Whether two states are about the same history. */
export const isSameHistory = (one, other) =>
  one.user === other.user && JSON.stringify(one.history) === JSON.stringify(other.history);

/** Whose history a state is about, in words. */
export const subjectOf = (state) => state.user ?? "a pasted history";

/** What an edit can or cannot do to the answer, in sentences. */

import { formatDuration, formatInstant } from "../shell/format.js";
import { inMilliseconds } from "./exact_instants.js";

/** What became of an event on one side, where it has no weight. */
export const PARTS = {
  later: "after the query time",
  unknown: "unknown to the model",
  ignored: "action not read",
  told: "told twice",
  old: "too old",
};

const WHY_UNREAD = {
  later: "lies after the query time: it is not read",
  unknown: "the model does not know this item: it cannot read the event",
  told: "the history holds this very event already: it counts once",
  old: "the model reads only the most recent events, and has newer ones: this one is not read",
};

/** The instant of an event as a person reads it. */
export const when = (at) => `${formatInstant(inMilliseconds(at))} UTC`;

/** An edit in words; `name` is that of its item. */
export function inSentence(edit, name, begin) {
  switch (edit.kind) {
    case "add":
      return `Added ${name}${edit.action === null ? "" : `, ${edit.action},`} at ${when(edit.at)}`;
    case "remove":
      return `Removed ${name} of ${when(edit.of.at)}`;
    case "move": {
      const by = inMilliseconds(edit.at) - inMilliseconds(edit.of.at);
      return `Moved ${name} by ${signed(by)}, from ${when(edit.of.at)} to ${when(edit.at)}`;
    }
    case "action":
      return `Changed the action of ${name} from ${quoted(edit.of.action)} to ${quoted(edit.action)}`;
    default:
      return `Moved the query time by ${signed(edit.at - begin)}, to ${formatInstant(edit.at)} UTC`;
  }
}

/**
 * What is to be known of an edit's effect: sentences, often none. `row` is as `weightedRows` has it,
 * undefined where the event is not in the history (any more); `model` as the API describes it, or
 * null while it is not known.
 */
export function remarksOn(edit, row, model) {
  if (edit.kind === "query_time") return [];
  if (row === undefined) return ["this event is not in the stored history: the edit does nothing"];
  if (edit.kind === "remove") {
    const { part } = row.before;
    return part === null || part === "read" ? [] : [`it was not read before: ${unread(row.before)}`];
  }
  if (row.after === null) return [];
  const remarks = [];
  if (edit.kind === "action" && model !== null) remarks.push(...onAction(edit, model));
  const { part } = row.after;
  const isSaid = edit.kind === "action" && part === "ignored";
  if (part !== null && part !== "read" && !isSaid) remarks.push(unread(row.after));
  return remarks;
}

/** What a model makes of actions, as far as that is less than everything. */
export function readingOf({ manifest: { recommender } }) {
  const ignored = recommender.ignored_actions.map(quoted).join(", ");
  const said = [];
  if (recommender.actions.length === 0) said.push("This model does not read actions.");
  if (ignored) said.push(`It leaves out events with the action ${ignored}.`);
  return said.join(" ");
}

/** What a model makes of another action. */
function onAction({ of: { action: was }, action: is }, { manifest: { recommender } }) {
  const ignored = new Set(recommender.ignored_actions);
  if (ignored.has(was) && ignored.has(is)) {
    return ["this model leaves out events with either action: no score can change"];
  }
  if (ignored.has(is)) return [`this model leaves out events with the action ${quoted(is)}: it is not read now`];
  if (ignored.has(was)) return [`this model leaves out events with the action ${quoted(was)}: it is read only now`];
  if (recommender.actions.length === 0) {
    return ["this model does not read actions: no score can change"];
  }
  const known = new Set(recommender.actions);
  if (is === null || known.has(is)) return [];
  const nothing = was === null || !known.has(was) ? ": no score can change" : "";
  return [`this model does not know the action ${quoted(is)}, and reads it as none${nothing}`];
}

const unread = ({ part, action }) =>
  part === "ignored"
    ? `this model leaves out events with the action ${quoted(action)}: it is not read`
    : WHY_UNREAD[part];

const quoted = (action) => (action === null ? "none" : `“${action}”`);

const signed = (duration) => `${duration < 0 ? "−" : "+"}${formatDuration(Math.abs(duration))}`;

/** Asks the service about a history as it is stored and as it was edited. */

import { call, describeModel } from "../shell/api.js";
import { isLater } from "./edits.js";
import { exactly, inMilliseconds } from "./exact_instants.js";

export const LONGEST_HISTORY = 1000;
const MOST_RANKED = 500;
const MOST_KEPT = 40;

/** Answers by question: most edits change one side only, and undoing one asks what was asked before. */
const answers = new Map();

function once(question, ask) {
  if (!answers.has(question)) {
    const answer = ask();
    answers.set(question, answer);
    answer.catch(() => answers.delete(question));
    if (answers.size > MOST_KEPT) answers.delete(answers.keys().next().value);
  }
  return answers.get(question);
}

const post = (path, body, signal) =>
  once(path + JSON.stringify(body), () => call(path, { body, signal }));

/** Forget what was answered: another version may serve, or another key be held. */
export const forgetAnswers = () => answers.clear();

/**
 * Both sides of a comparison: `{model, before, after}`, where a side is `{queryTime, events, isCut,
 * swept, ranked}`: the events that were sent, whether older ones had to stay behind, what the
 * model attended to and recommended at that instant, and the scores of everything that either
 * side shows. `version` is null where none serves, which the service then says. `rows` are as `editedEvents` has them; `alsoRank` are items whose names are wanted.
 *
 * It is a sweep over one instant that is asked for: it answers what a recommendation does, but is
 * not taken down as shown to anybody, so that looking leaves no trace in the clicks of a version.
 */
export async function compare({ rows, begin, end, n, exclude_seen, version, alsoRank }, signal) {
  const sides = [sent(rows, "before", begin), sent(rows, "after", end)];
  const sweep = (side) => ({ n, exclude_seen, ...about(side), query_times: [exactly(side.queryTime)] });
  const [model, ...swept] = await Promise.all([
    version === null ? null : once(`model ${version}`, () => describeModel(version, signal)),
    ...sides.map((side) => post("v1/attention", { ...sweep(side), model_version: version }, signal)),
  ]);
  const shown = swept.flatMap(({ instants: [at] }) => at.items.map((item) => item.item_id));
  const itemIds = [...new Set([...shown, ...alsoRank])].sort().slice(0, MOST_RANKED);
  const ranked = await Promise.all(
    sides.map((side) => {
      if (itemIds.length === 0) return { items: [], fallback: null };
      const query_time = exactly(side.queryTime);
      const body = { ...about(side), query_time, item_ids: itemIds, model_version: version };
      return post("v1/rankings", body, signal);
    }),
  );
  const [before, after] = sides.map((side, place) => ({
    ...side,
    swept: swept[place],
    ranked: ranked[place],
  }));
  return { model, before, after };
}

/** What of the rows one side sends: nothing after the query time, each event once, the newest. */
function sent(rows, name, queryTime) {
  const events = rows
    .filter((row) => row[name] !== null && !row[name].isTold && !isLater(row[name], queryTime))
    .map((row) => ({ itemId: row.itemId, ...row[name] }))
    .map((event) => ({ ...event, milliseconds: inMilliseconds(event.at) }))
    .sort((one, other) => one.milliseconds - other.milliseconds);
  return {
    queryTime,
    events: events.slice(-LONGEST_HISTORY),
    isCut: events.length > LONGEST_HISTORY,
  };
}

const about = ({ events }) => ({
  history: events.map(({ itemId, at, action }) => ({
    item_id: itemId,
    timestamp: at,
    ...(action === null ? {} : { action }),
  })),
});

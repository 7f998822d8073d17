// @ts-check
/** What is taken away from each card of the What if page. */

import { formatInstant } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { compareItems } from "./data.js";

/**
 * @typedef {import("./data.js").Comparison} Comparison
 * @typedef {import("./data.js").ComparedItem} ComparedItem
 * @typedef {import("./edits.js").Row} Row
 */

/**
 * Fills the menus of the cards.
 *
 * @param {object} page
 * @param {() => Comparison | null} page.shown null before the first response
 * @param {{scores: any, weights: any}} page.cards
 * @param {(itemId: string) => string | null} page.titleOf
 */
export function offerTakeAway({ shown, cards, titleOf }) {
  const offer = (id, word, sentence, read) =>
    new TakeAway(byId(id), () => {
      const comparison = shown();
      if (comparison === null) return { why: "No history is compared yet." };
      const { model, before, after } = comparison;
      return {
        title: byId(id).querySelector("h2").textContent.trim(),
        caption:
          `Version ${model.version}; ${byId("history-name").textContent}, at ${formatInstant(before.queryTime)} UTC ` +
          `before the edits and ${formatInstant(after.queryTime)} UTC after them. ${sentence()}`,
        name: toFileName(`what-if-${word}`),
        ...read(comparison),
      };
    });
  offer("items-card", "items", textOf("top-summary"), (comparison) => ({
    chart: null,
    rows: compareItems(comparison).map(toItemRow),
    requests: toRequests(comparison, ["sweep", "ranking"]),
  }));
  offer("scores-card", "scores", textOf("scores-summary"), (comparison) =>
    cards.scores.drawn.length === 0
      ? { why: byId("no-scores").textContent.trim() }
      : {
          chart: cards.scores.chart,
          rows: cards.scores.drawn.map(toScoreRow),
          requests: toRequests(comparison, ["sweep", "ranking"]),
        },
  );
  offer("weights-card", "weights", textOf("weights-summary"), (comparison) =>
    cards.weights.weighted.length === 0
      ? { why: byId("no-weights").textContent.trim() }
      : {
          chart: cards.weights.chart,
          rows: cards.weights.weighted.map((row) => toEventRow(row, titleOf(row.itemId))),
          requests: toRequests(comparison, ["sweep"]),
        },
  );
}

const textOf = (id) => () => byId(id).textContent;

/**
 * The requests of both sides, each once: the edits may have changed neither history nor query time.
 *
 * @param {Comparison} comparison
 * @param {("sweep" | "ranking")[]} kinds
 */
function toRequests({ before, after }, kinds) {
  const requests = kinds.flatMap((kind) => [before.requests[kind], after.requests[kind]]);
  return [...new Map(requests.map((request) => [JSON.stringify(request), request])).values()].filter(
    (request) => request !== null,
  );
}

/** @param {ComparedItem} item */
const toScoreRow = ({ itemId, title, before, after, difference }) => ({
  item_id: itemId,
  title,
  score_before: before.score,
  score_after: after.score,
  score_difference: difference,
});

/** @param {ComparedItem} item */
const toItemRow = (item) => ({
  ...toScoreRow(item),
  rank_before: item.before.rank,
  rank_after: item.after.rank,
});

/**
 * @param {Row} row
 * @param {string | null} title
 */
const toEventRow = ({ itemId, before, after }, title) => ({
  item_id: itemId,
  title,
  timestamp_before: before?.at ?? null,
  timestamp_after: after?.at ?? null,
  action_before: before?.action ?? null,
  action_after: after?.action ?? null,
  weight_before: before?.weight ?? null,
  weight_after: after?.weight ?? null,
});

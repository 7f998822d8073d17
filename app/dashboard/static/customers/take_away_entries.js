// @ts-check
/** What is taken away from each card of the Customers page. */

import { formatInstant } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { TakeAway } from "../widgets/take_away.js";
import { toBody, toSweepBody, userLabel } from "./data.js";

/**
 * Fills the menus of the cards.
 *
 * @param {object} page
 * @param {() => {state: any, instants: number[]} | null} page.shown what is on display; null for nothing
 * @param {{baskets: any, ranks: any, ranking: any, why: any}} page.cards
 */
export function offerTakeAway({ shown, cards }) {
  const offer = (id, file, { title, chart = null, rows, request }) =>
    new TakeAway(byId(id), () => {
      const page = shown();
      if (page === null) return null;
      const user = userLabel(page.state);
      return {
        title: `${title}: ${user}, ${formatInstant(page.state.query_time)} UTC`,
        name: `kairos-${file}-${user.replace(/[^\w-]+/g, "_")}`,
        chart,
        rows: rows(),
        request: request(page),
      };
    });
  offer("baskets", "attention", {
    title: "What the model looks at",
    chart: cards.baskets.chart,
    rows: () => cards.baskets.table().rows.map(attentionRow),
    request: sweepRequest,
  });
  offer("ranks", "ranks", {
    title: "Ranks over time",
    chart: cards.ranks.chart,
    rows: () => cards.ranks.table().map(rankRow),
    request: sweepRequest,
  });
  offer("ranking", "items", {
    title: "Recommended",
    rows: () => cards.ranking.table(),
    request: listRequest("attention"),
  });
  offer("why", "reasons", {
    title: "Why",
    rows: () => cards.why.table(),
    request: listRequest("reasons"),
  });
}

const attentionRow = ({ at, itemId, name, action, weight, lift }) => ({
  timestamp: new Date(at).toISOString(),
  item_id: itemId,
  title: name,
  action,
  weight,
  lift,
});

const rankRow = ({ at, itemId, name, rank }) => ({
  query_time: new Date(at).toISOString(),
  item_id: itemId,
  title: name,
  rank,
});

const sweepRequest = ({ state, instants }) => ({ path: "v1/attention", body: toSweepBody(state, instants) });

const listRequest =
  (explain) =>
  ({ state }) => ({ path: "v1/recommendations", body: { ...toBody(state), explain } });

// @ts-check
/** What is taken away from each card of the Customers page. */

import { formatInstant } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { toBody, toSweepBody, userLabel } from "./data.js";

/**
 * Fills the menus of the cards.
 *
 * @param {object} page
 * @param {() => {state: any, instants: number[]} | null} page.shown what is on display; null for nothing
 * @param {{baskets: any, ranks: any, ranking: any, why: any}} page.cards
 */
export function offerTakeAway({ shown, cards }) {
  const offer = (id, file, { title, sentence = () => "", chart = null, rows, requests }) =>
    new TakeAway(byId(id), () => {
      const page = shown();
      if (page === null) return { why: "No customer is shown yet." };
      const user = userLabel(page.state);
      return {
        title: `${title}: ${user}, ${formatInstant(page.state.query_time)} UTC`,
        caption: `Version ${byId("model-version").textContent}. ${sentence()}`,
        name: toFileName(file, user),
        chart,
        rows: rows(),
        requests: requests(page),
      };
    });
  offer("baskets", "attention", {
    title: "What the model looks at",
    sentence: () => byId("baskets-summary").textContent,
    chart: cards.baskets.chart,
    rows: () => cards.baskets.table().rows.map(attentionRow),
    requests: sweepRequests,
  });
  offer("ranks", "ranks", {
    title: "Ranks over time",
    chart: cards.ranks.chart,
    rows: () => cards.ranks.table().map(rankRow),
    requests: sweepRequests,
  });
  offer("ranking", "items", {
    title: "Recommended",
    rows: () => cards.ranking.table(),
    requests: rankingRequests,
  });
  offer("why", "reasons", {
    title: "Why",
    rows: () => cards.why.table(),
    requests: listRequests("reasons"),
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

const sweepRequests = ({ state, instants }) => [{ path: "v1/attention", body: toSweepBody(state, instants) }];

const listRequests =
  (explain) =>
  ({ state }) => [{ path: "v1/recommendations", body: { ...toBody(state), explain } }];

/** The request for the list, and that for the list it is compared with. */
const rankingRequests = (page) => {
  const { compare_version: version, compare_time: at } = page.state;
  const list = listRequests("attention");
  if (version !== null) return [...list(page), ...list({ state: { ...page.state, model_version: version } })];
  return at === null ? list(page) : [...list(page), ...list({ state: { ...page.state, query_time: at } })];
};

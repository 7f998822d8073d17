// @ts-check
/** What is taken away from each card of the Items page. */

import { byId } from "../shell/html.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";

/**
 * Fills the menus of the cards.
 *
 * @param {object} page
 * @param {Map<string, any>} page.answers the requests of each kind with their responses, or a refusal
 * @param {{popular: any, map: any, popularity: any}} page.cards
 * @param {() => string | null} page.chosen the id of the chosen item
 */
export function offerTakeAway({ answers, cards, chosen }) {
  const offer = (id, kind, read, why = "This card has no response of the service yet.") =>
    new TakeAway(byId(id), () => {
      const { response = null, refusal = null, requests } = answers.get(kind) ?? {};
      if (response === null) return { why: refusal ?? why };
      const name = id === "popular" || id === "map-card" ? [] : [chosen() ?? ""];
      return { name: toFileName(id, ...name), chart: null, requests: requests.slice(0, 1), ...read(response[0]) };
    });
  const heading = (id) => byId(`${id}-heading`).textContent.trim();
  const ofItem = (what) => `${what}: ${heading("item")}`;
  const itemCaption = () => `Item ${chosen()}.`;
  offer("popular", "map", ({ model_version: version }) => ({
    title: heading("popular"),
    caption: `Version ${version}; events in its training data.`,
    rows: cards.popular.found.map(({ rank, ...item }) => ({ rank, ...toItemRow(item) })),
  }));
  offer("item", "similar", ({ items, model_version: version }) => ({
    title: ofItem("Similar items"),
    caption: `${itemCaption()} Version ${version}.`,
    rows: items.map(({ rank, item_id, title, categories, score }) => ({
      rank,
      item_id,
      title,
      categories: categories.join("; "),
      cosine: score,
    })),
  }));
  offer("map-card", "map", ({ items }) => ({
    title: heading("map"),
    caption: `${chosen() === null ? "" : itemCaption()} ${byId("map-summary").textContent}`,
    name: toFileName("map"),
    chart: cards.map.chart,
    rows: items.map(({ x, y, ...item }) => ({ ...toItemRow(item), x, y })),
  }));
  offer("popularity", "popularity", ({ counts, actions, step }) => ({
    title: ofItem(`Events per ${step}`),
    caption: `${itemCaption()} ${byId("popularity-summary").textContent}`,
    chart: cards.popularity.chart,
    rows: counts.map(({ start, events }, index) => ({
      start,
      events,
      ...Object.fromEntries(Object.entries(actions).map(([action, of]) => [`events_${action}`, of[index]])),
    })),
  }));
  offer(
    "recipients",
    "recipients",
    ({ instants }) => ({
      title: ofItem("Who would be recommended"),
      caption: `${itemCaption()} ${byId("recipients-note").textContent}`,
      rows: instants.flatMap(toRecipientRows),
    }),
    "Find customers first.",
  );
}

/** @param {any} item of the map */
const toItemRow = ({ item_id, title, categories, events }) => ({
  item_id,
  title,
  categories: categories.join("; "),
  events,
});

/** A row per recipient; an instant without recipients has one row. */
const toRecipientRows = ({ query_time, sampled_users, listed, share_of_top_10, recipients }) =>
  (recipients.length === 0 ? [{ rank: null, user_id: null }] : recipients).map(({ rank, user_id }) => ({
    query_time,
    sampled_users,
    listed_users: listed,
    share_of_top_10,
    rank,
    user_id,
  }));

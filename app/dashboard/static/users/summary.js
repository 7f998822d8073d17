/** What the picture of the weights shows, in words. */

import { formatPercent, pluralize } from "../shell/format.js";

/** Which weights these are, and the heaviest event; `head` is a number from 1, or null. */
export function weightsInWords(events, answer, { head, items }) {
  const read = events.filter((event) => event.part === "read");
  if (read.length === 0) return "No event was read at this instant, so there are no weights.";
  const heaviest = read.reduce((one, other) => (other.weight > one.weight ? other : one));
  const title = items.get(heaviest.itemId)?.title || heaviest.itemId;
  const which = head === null ? "averaged over heads" : `of head ${head}`;
  const sum = answer.attention.normalised ? ", summing to 100 %" : "";
  const ticks = read.length < events.length ? " Ticks on the axis are events without a weight." : "";
  return (
    `Weights of the last block at the query position, ${which}, over the ` +
    `${pluralize(read.length, "event")} read${sum}. ` +
    `Most weighted: ${title}, ${formatPercent(heaviest.weight)}.${ticks}`
  );
}

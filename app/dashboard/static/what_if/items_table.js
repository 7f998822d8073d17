/** Both top lists as one table: rank and score before, rank and score after, and what changed. */

import { byId, element, itemName } from "../shell/html.js";

const EVEN = 0.0005;

/** Show items as `comparedItems` has them; `excludesSeen` explains why one of them left. */
export function showItems(items, excludesSeen) {
  byId("compared-items").replaceChildren(...items.map((item) => row(item, excludesSeen)));
}

function row(item, excludesSeen) {
  const { itemId, title, categories, before, after } = item;
  return element(
    "tr",
    { "data-item": itemId, class: item.change },
    element(
      "td",
      {},
      itemName(title, itemId),
      categories.length ? element("span", { class: "note block" }, categories.join(", ")) : null,
    ),
    element("td", { class: "number was-rank" }, before.rank ?? "–"),
    element("td", { class: "number is-rank" }, after.rank ?? "–"),
    element("td", { class: "moved" }, ...inWords(item, excludesSeen)),
    element("td", { class: "number was-score" }, score(before)),
    element("td", { class: "number is-score" }, score(after)),
    element("td", { class: "number difference" }, signed(item.difference)),
  );
}

function inWords({ change, by, before, after }, excludesSeen) {
  const sign = (text) => element("span", { class: "sign", "aria-hidden": "true" }, text);
  switch (change) {
    case "entered":
      return [sign("+"), excludesSeen && before.isSeen ? "entered: not seen now" : "entered"];
    case "left":
      return [sign("−"), excludesSeen && after.isSeen ? "left: seen now" : "left"];
    case "up":
      return [sign("▲"), `up ${by}`];
    case "down":
      return [sign("▼"), `down ${by}`];
    default:
      return [sign("="), "same"];
  }
}

const score = ({ score: value }) => (value === null ? "–" : String(rounded(value)));

// A popular item's score is a count of events, that of the model a real number.
const rounded = (value) => (Number.isInteger(value) ? value : value.toFixed(3));

/** A difference with its sign; a dash where scores do not compare. */
export function signed(difference) {
  if (difference === null) return "–";
  if (Math.abs(difference) < EVEN) return "0.000";
  return `${difference < 0 ? "−" : "+"}${Math.abs(difference).toFixed(3)}`;
}

/** What happened to the list, in a sentence. */
export function summaryOf(items) {
  const count = (...changes) => items.filter(({ change }) => changes.includes(change)).length;
  const said = [
    [count("entered"), "entered"],
    [count("left"), "left"],
    [count("up", "down"), "moved"],
    [count("same"), "kept the rank"],
  ].filter(([number]) => number > 0);
  const moves = said.map(([number, what]) => `${number} ${what}`).join(", ");
  const compared = items.filter(({ difference }) => difference !== null);
  if (compared.length === 0) return `${moves}.`;
  const largest = compared.reduce((one, other) =>
    Math.abs(other.difference) > Math.abs(one.difference) ? other : one,
  );
  if (Math.abs(largest.difference) < EVEN) return `${moves}. No score changed.`;
  const name = largest.title || largest.itemId;
  return `${moves}. Largest change of a score: ${name}, ${signed(largest.difference)}.`;
}

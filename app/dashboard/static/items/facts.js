/** What is known of an item. */

import { formatInstant, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";

/**
 * Show `{itemId, stored, refusal, mapped, version}`: the item as it is stored, or in the words of
 * `refusal` why it is not; and as it is on the map of a version, where it is.
 */
export function showFacts({ itemId, stored, refusal, mapped, version }) {
  const categories = stored?.categories ?? mapped?.categories ?? null;
  const rows = [["Id", element("code", {}, itemId)]];
  if (categories !== null) rows.push(["Categories", categories.join(", ") || "none"]);
  if (stored !== null) {
    rows.push(["Available", availability(stored)]);
    const properties = Object.entries(stored.properties ?? {});
    if (properties.length > 0) rows.push(["Properties", list(properties)]);
    rows.push(["Stored", `${formatInstant(Date.parse(stored.updated_at))} UTC`]);
  } else if (refusal !== null) {
    rows.push(["Stored", element("span", { class: "caution" }, `no: ${refusal}`)]);
  }
  if (mapped) rows.push(["Trained on", `${pluralize(mapped.events, "event")} of it, by ${version}`]);
  byId("facts").replaceChildren(
    ...rows.flatMap(([name, said]) => [element("dt", {}, name), element("dd", {}, said)]),
  );
}

function availability({ available_from: from, available_until: until }) {
  const now = Date.now();
  const isNow = (from === null || Date.parse(from) <= now) && (until === null || now < Date.parse(until));
  const span = [
    from === null ? "" : ` from ${formatInstant(Date.parse(from))} UTC`,
    until === null ? "" : ` until ${formatInstant(Date.parse(until))} UTC`,
  ].join("");
  if (isNow) return `now${span || ", without an end"}`;
  return element("span", { class: "caution" }, `not now, only${span}`);
}

function list(properties) {
  return element(
    "ul",
    { class: "properties" },
    ...properties.map(([name, value]) =>
      element("li", {}, element("span", { class: "note" }, name), ": ", shown(value)),
    ),
  );
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

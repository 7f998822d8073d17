/** One event in the table: what it is, what it was, and the buttons that edit it. */

import { formatInstant, formatPercent } from "../shell/format.js";
import { element, itemName } from "../shell/html.js";
import { inMilliseconds } from "./exact_instants.js";
import { PARTS } from "./remarks.js";

export class EventRow {
  element;
  #event = element("td", { class: "event" });
  #before = element("td", { class: "number before" });
  #after = element("td", { class: "number after" });
  #edit = element("button", { type: "button", class: "plain", "data-do": "edit", "aria-expanded": "false" }, "Edit");
  #remove = element("button", { type: "button", class: "plain", "data-do": "remove" });
  #said = "";

  constructor(key) {
    const buttons = element("td", { class: "does" }, this.#edit, this.#remove);
    this.element = element("tr", { "data-key": key }, this.#event, this.#before, this.#after, buttons);
  }

  focus() {
    this.#edit.focus();
  }

  expand(isOpen) {
    this.#edit.setAttribute("aria-expanded", isOpen);
  }

  /** Say what the row is now. The buttons stay the same: one of them may have the focus. */
  show({ itemId, before, after }, title) {
    // Most rows are as they were a moment ago.
    const said = JSON.stringify([before, after, title]);
    if (said === this.#said) return;
    this.#said = said;
    const name = title || itemId;
    const word = before === null ? "added" : after === null ? "removed" : null;
    this.#event.replaceChildren(
      itemName(title, itemId),
      word ? element("span", { class: "badge" }, word) : "",
      element("span", { class: "note block when" }, ...change(before, after, when)),
      element("span", { class: "note block action" }, ...change(before, after, actionOf)),
    );
    this.#before.replaceChildren(weight(before, "–"));
    this.#after.replaceChildren(weight(after, "–"));
    this.element.className = after === null ? "gone" : before === null ? "new" : "";
    this.#edit.disabled = after === null;
    this.#edit.setAttribute("aria-label", `Edit ${name}`);
    this.#remove.textContent = after === null ? "Put back" : "Remove";
    this.#remove.setAttribute("aria-label", `${this.#remove.textContent} ${name}`);
  }
}

const when = (side) => formatInstant(inMilliseconds(side.at));
const actionOf = (side) => side.action ?? "no action";

/** What it is now, and what it was where that is something else. */
function change(before, after, tell) {
  if (before === null || after === null) return [tell(after ?? before)];
  const [was, is] = [tell(before), tell(after)];
  return was === is ? [is] : [element("del", {}, was), " ", element("ins", {}, is)];
}

function weight(side, absent) {
  if (side === null) return absent;
  if (side.weight !== null) return formatPercent(side.weight);
  const why = side.part === "read" ? absent : (PARTS[side.part] ?? "…");
  return element("span", { class: "note why" }, why);
}

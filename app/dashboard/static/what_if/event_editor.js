/** Where one event is moved in time, or gets another action: opened beneath its row. */

import { parseFieldValue, toFieldValue } from "../shell/format.js";
import { element } from "../shell/html.js";
import { STEPS } from "../widgets/query_time.js";
import { exactly, inMilliseconds, shifted } from "./exact_instants.js";

export class EventEditor {
  /** The element to show, a row of the table. */
  row;
  #when;
  #action;
  #at;

  /**
   * `move(at)`, `act(action)` and `close()` are called as the reader asks for it; `columns` is how
   * wide the table is, `label` names the event.
   */
  constructor({ label, columns, move, act, close }) {
    this.#when = element("input", { type: "datetime-local", step: "1", max: "9999-12-31T23:59:59" });
    this.#action = element("input", { type: "text", maxLength: 64, spellcheck: false });
    this.#action.setAttribute("list", "known-actions");
    this.#when.addEventListener("input", () => {
      const at = parseFieldValue(this.#when.value);
      if (at !== null) move(exactly(at));
    });
    this.#action.addEventListener("change", () => act(this.#action.value.trim() || null));
    const steps = STEPS.map(([words, by]) => {
      const step = element("button", { type: "button" }, words);
      step.addEventListener("click", () => move(shifted(this.#at, by)));
      return step;
    });
    const done = element("button", { type: "button", class: "plain" }, "Done");
    done.addEventListener("click", close);
    const fields = element(
      "div",
      { class: "editor", role: "group", "aria-label": `Edit ${label}` },
      element("label", {}, "When (UTC) ", this.#when),
      element("div", { class: "steps", role: "group", "aria-label": "Move by" }, ...steps),
      element("label", {}, "Action ", this.#action),
      done,
    );
    fields.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    });
    this.row = element("tr", { class: "editing" }, element("td", { colSpan: columns }, fields));
  }

  focus() {
    this.#when.focus();
  }

  /** Say what the event is now; a field that is being typed into is left alone. */
  show({ at, action }) {
    this.#at = at;
    if (document.activeElement !== this.#when) this.#when.value = toFieldValue(inMilliseconds(at));
    if (document.activeElement !== this.#action) this.#action.value = action ?? "";
  }
}

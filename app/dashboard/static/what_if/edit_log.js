/** The list of edits, each of which can be undone. */

import { byId, element } from "../shell/html.js";
import { rowOf } from "./edits.js";
import { inSentence, remarksOn } from "./remarks.js";

export class EditLog {
  #list = byId("edits");
  #reset = byId("reset");

  /** `undo(place)` is called with the place of an edit in the list, `reset()` for all of them. */
  constructor({ undo, reset }) {
    this.#list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) undo(Number(button.dataset.place));
    });
    this.#reset.addEventListener("click", () => {
      reset();
      byId("edits-heading").focus();
    });
  }

  /** Show `{edits, rows, titles, begin, model}`; rows as `weightedRows` has them, model perhaps null. */
  show({ edits, rows, titles, begin, model }) {
    const focused = this.#list.contains(document.activeElement) ? document.activeElement : null;
    this.#list.replaceChildren(
      ...edits.map((edit, place) => {
        const row = rowOf(rows, edit);
        const itemId = (edit.of ?? edit).itemId;
        const sentence = inSentence(edit, titles.get(itemId) || itemId, begin);
        return entry(sentence, remarksOn(edit, row, model), place);
      }),
    );
    byId("no-edits").hidden = edits.length > 0;
    this.#reset.disabled = edits.length === 0;
    // The answers come a moment after the edit, and must not take the focus away.
    if (focused) this.#focusNear(Number(focused.dataset.place));
  }

  /** Undoing takes away the button that had the focus; its neighbour gets it, or the heading. */
  #focusNear(place) {
    const buttons = this.#list.querySelectorAll("button");
    (buttons[Math.min(place, buttons.length - 1)] ?? byId("edits-heading")).focus();
  }
}

function entry(sentence, remarks, place) {
  const undo = element(
    "button",
    { type: "button", class: "plain", "data-place": place, "aria-label": `Undo: ${sentence}` },
    "Undo",
  );
  const said = remarks.map((remark) => element("span", { class: "remark block" }, remark));
  return element("li", {}, element("span", {}, sentence, ...said), undo);
}

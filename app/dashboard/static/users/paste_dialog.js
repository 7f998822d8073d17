/** Takes a history from the clipboard: the dialog, and the note that says one is shown. */

import { pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { fitsInALink, NotAHistory, readPasted } from "./pasted.js";

const EXAMPLE = `[
  {"item_id": "sku-0002", "timestamp": "2011-06-01T10:00:00Z", "action": "purchase"},
  {"item_id": "sku-0138", "timestamp": "2011-11-24T08:30:00Z"}
]`;

export class PasteDialog {
  #use;
  #text = element("textarea", {
    id: "pasted",
    rows: 12,
    spellcheck: false,
    placeholder: EXAMPLE,
    "aria-describedby": "pasted-about pasted-refused",
  });
  #refused = element("p", { id: "pasted-refused", class: "refusal", role: "alert" });
  #dialog;

  /** `use(pasted)` is called with what `readPasted` makes of the text. */
  constructor(use) {
    this.#use = use;
    this.#dialog = this.#made();
    document.body.append(this.#dialog);
    byId("paste").addEventListener("click", () => {
      this.#refused.textContent = "";
      this.#dialog.showModal();
      this.#text.focus();
    });
  }

  #made() {
    const cancel = element("button", { type: "button" }, "Cancel");
    const show = element("button", { type: "submit", class: "main" }, "Show it");
    const form = element(
      "form",
      { method: "dialog" },
      element("h2", { id: "paste-heading" }, "Paste a history"),
      element(
        "p",
        { id: "pasted-about", class: "note" },
        "A JSON list of events with item_id, timestamp and perhaps action, or a whole request body of " +
          "POST /v1/recommendations. It is sent along with each question; nothing is stored.",
      ),
      element("label", { htmlFor: "pasted" }, "History as JSON"),
      this.#text,
      this.#refused,
      element("div", { class: "buttons" }, show, cancel),
    );
    cancel.addEventListener("click", () => this.#dialog.close());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    return element("dialog", { id: "paste-dialog", class: "card", "aria-labelledby": "paste-heading" }, form);
  }

  #submit() {
    try {
      const pasted = readPasted(this.#text.value);
      this.#dialog.close();
      this.#use(pasted);
    } catch (error) {
      if (!(error instanceof NotAHistory)) throw error;
      this.#refused.textContent = error.message;
      this.#text.focus();
    }
  }
}

/** Say that a pasted history is shown, how far its link reaches and which fields were left out. */
export function showPasteNote(history, leftOut = []) {
  const note = byId("paste-note");
  if (history === null) {
    note.textContent = "";
    return;
  }
  const link = fitsInALink(history)
    ? "The link to this page carries it."
    : "The link to this page does not carry it: that takes at most 50 events and 4,000 characters.";
  const ignored = leftOut.length
    ? ` Left out, as this view cannot ask about it: ${leftOut.join(", ")}.`
    : "";
  note.textContent = `Shown: a pasted history of ${pluralize(history.length, "event")}, stored nowhere. ${link}${ignored}`;
}

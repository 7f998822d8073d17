/** Asks the reader before anything changes, and shows what the service says of it. */

import { Problem } from "../shell/api.js";
import { element } from "../shell/html.js";

const LONGEST_REASON = 500;

/**
 * A dialog that says what is about to change and takes a reason. `send(reason)` is called once the
 * reader agrees, with null for no reason; where it fails, the dialog stays and says why. Answers what
 * was sent back, or null where the reader did not go through with it.
 *
 * `says` are paragraphs as texts or nodes, `fields` further controls.
 */
export function confirm({ heading, says, fields = [], verb, send }) {
  const reason = element("input", {
    id: "reason",
    type: "text",
    maxLength: LONGEST_REASON,
    autocomplete: "off",
    "aria-describedby": "reason-note confirm-refused",
  });
  const refused = element("p", { id: "confirm-refused", class: "refusal", role: "alert" });
  const agree = element("button", { type: "submit", class: "main" }, verb);
  const cancel = element("button", { type: "button" }, "Cancel");
  const form = element(
    "form",
    { method: "dialog" },
    element("h2", { id: "confirm-heading" }, heading),
    ...says.map((text) => element("p", {}, text)),
    ...fields,
    element("label", { htmlFor: "reason" }, "Reason (optional)"),
    reason,
    element("p", { id: "reason-note", class: "note" }, "One line, kept in the audit trail."),
    refused,
    element("div", { class: "buttons" }, agree, cancel),
  );
  const dialog = element("dialog", { class: "card", "aria-labelledby": "confirm-heading" }, form);
  let answer = null;
  let isSending = false;

  cancel.addEventListener("click", () => dialog.close());
  // What is under way can no longer be called off.
  dialog.addEventListener("cancel", (event) => {
    if (isSending) event.preventDefault();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isSending) return;
    refused.textContent = "";
    isSending = true;
    show();
    try {
      answer = await send(reason.value.trim() || null);
      dialog.close();
    } catch (error) {
      if (!(error instanceof Problem)) console.error(error);
      refused.textContent = error.message;
    }
    isSending = false;
    show();
  });

  // Not disabled: a button that is cannot be where the focus returns to from the dialog for a key.
  function show() {
    agree.setAttribute("aria-disabled", isSending);
    cancel.disabled = isSending;
    form.setAttribute("aria-busy", isSending);
  }

  document.body.append(dialog);
  dialog.showModal();
  reason.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
  });
}

/**
 * The key this page sends. A key that only reads is kept while the tab is open; one that may change
 * things is kept in memory alone, and is gone with the next page, which reads with the kept one.
 */

import { element } from "./dom.js";

const SLOT = "kairos-read-key";

/** `{value, role, name}`, or null where the service lets this page in without. */
let held = remembered();
let asking = null;
let declinedAt = -1;
const watchers = [];

/** The headers that carry the key; none without one. */
export const authorization = () => (held === null ? {} : { Authorization: `Bearer ${held.value}` });

/** The key this page holds; null for none. */
export const keyHeld = () => held?.value ?? null;

/** The role of the key this page holds: "read", "admin", or null for no key. */
export const roleHeld = () => held?.role ?? null;

/** Call `watcher()` whenever another key, or none, is held. */
export function watchKey(watcher) {
  watchers.push(watcher);
}

/** Let go of the key, and of the one kept for the next page. */
export function forgetKey() {
  hold(null);
}

/**
 * Ask the reader for a key with a role, saying why; answers whether one is held then. However many
 * requests are refused, the reader is asked once: whoever has said no is not asked for a request
 * that was under way by then (`sentAt`, of the page's clock).
 */
export function askForKey(role, why, sentAt = performance.now()) {
  if (asking === null && sentAt <= declinedAt) return Promise.resolve(false);
  asking ??= ask(role, why).finally(() => {
    asking = null;
  });
  return asking;
}

function hold(key) {
  held = key;
  if (key === null) sessionStorage.removeItem(SLOT);
  else if (key.role === "read") sessionStorage.setItem(SLOT, JSON.stringify(key));
  for (const watcher of watchers) watcher();
}

function remembered() {
  try {
    const key = JSON.parse(sessionStorage.getItem(SLOT));
    return key?.role === "read" ? key : null;
  } catch {
    return null;
  }
}

function ask(role, why) {
  const dialog = dialogFor(role, why);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      const isHeld = dialog.returnValue === "held";
      if (!isHeld) declinedAt = performance.now();
      resolve(isHeld);
    });
  });
}

function dialogFor(role, why) {
  const field = element("input", {
    id: "key-field",
    type: "password",
    autocomplete: "off",
    spellcheck: false,
    required: true,
    "aria-describedby": "key-why key-refused",
  });
  const refused = element("p", { id: "key-refused", class: "refusal", role: "alert" });
  const cancel = element("button", { type: "button" }, "Cancel");
  const form = element(
    "form",
    { method: "dialog" },
    element("h2", { id: "key-heading" }, role === "admin" ? "An admin key is needed" : "A key is needed"),
    element("p", { id: "key-why", class: "note" }, why),
    element("label", { htmlFor: "key-field" }, "API key"),
    field,
    refused,
    element(
      "p",
      { class: "note" },
      "A read key stays until this tab is closed; an admin key only until you leave this page.",
    ),
    element("div", { class: "buttons" }, element("button", { type: "submit", class: "main" }, "Use key"), cancel),
  );
  const dialog = element("dialog", { class: "card", "aria-labelledby": "key-heading" }, form);
  cancel.addEventListener("click", () => dialog.close("cancelled"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.textContent = "";
    const answer = await identify(field.value.trim());
    // The reader may have thought better of it meanwhile.
    if (!dialog.open) return;
    if (answer.key !== null && (role !== "admin" || answer.key.role === "admin")) {
      hold(answer.key);
      dialog.close("held");
    } else {
      refused.textContent =
        answer.refused ?? "this key may read, but not change anything; enter one with the role admin";
      field.select();
    }
  });
  return dialog;
}

/** What the service says of a key: `{key}`, or `{key: null, refused}`. */
async function identify(value) {
  try {
    const response = await fetch(new URL("../v1/caller", document.baseURI), {
      headers: { Accept: "application/json", Authorization: `Bearer ${value}` },
    });
    const answer = await response.json();
    if (!response.ok) return { key: null, refused: answer.detail };
    return { key: { value, role: answer.role, name: answer.name } };
  } catch {
    // A character no header can carry, or no service to ask.
    return { key: null, refused: "the service could not be asked about this key; check it, then try again" };
  }
}

/** The element of the banner that says which key is held, and changes it. */
export function keyControl() {
  const said = element("span", { class: "note" });
  const change = element("button", { type: "button" });
  const show = () => {
    said.textContent = held === null ? "" : `${held.role} key ${held.name}`;
    change.textContent = held === null ? "Enter a key" : "Forget key";
  };
  change.addEventListener("click", () => {
    if (held !== null) forgetKey();
    else askForKey("read", "Keys are made with: kairos keys create");
  });
  watchKey(show);
  show();
  return element("span", { class: "key" }, said, change);
}

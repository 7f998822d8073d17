// @ts-check
/**
 * The API key of this page. A read key is kept in the session storage until the tab is closed; an
 * admin key is kept in memory and is gone with the next page, which uses the stored read key again.
 *
 * The local token of the process, which a link brings along in its fragment, is kept like a read
 * key: it ends with the process. Session storage belongs to one origin, port included; a cookie
 * would go to every service on this machine.
 */

import { html, render } from "./html.js";

const SLOT = "kairos-read-key";
const LOCAL_TOKEN = /^kairos_local_[\w-]+$/;

/** @typedef {{value: string, role: "read" | "admin", name: string}} Key */

/** @type {Key | null} null where the service needs no key */
let held = takeTokenFromLink() ?? loadStoredKey();
/** @type {Promise<boolean> | null} */
let prompting = null;
let declinedAt = -1;
/** @type {(() => void)[]} */
const listeners = [];

/**
 * The headers that carry the key; none without one.
 *
 * @returns {Record<string, string>}
 */
export const authorizationHeaders = () =>
  held === null ? {} : { Authorization: `Bearer ${held.value}` };

/** The key this page holds, or null. */
export const heldKey = () => held?.value ?? null;

/** The role of the held key: "read", "admin", or null for no key. */
export const heldRole = () => held?.role ?? null;

/**
 * Calls `listener()` whenever the held key changes.
 *
 * @param {() => void} listener
 */
export function onKeyChange(listener) {
  listeners.push(listener);
}

/** Drops the held key and the stored one. */
export function forgetKey() {
  holdKey(null);
}

/**
 * Prompts the user for a key with a role. Requests that are refused at the same time share one
 * prompt; a request sent before the user last declined (`sentAt`, of the page's clock) opens none.
 *
 * @param {"read" | "admin"} role
 * @param {string} why shown in the dialog
 * @returns {Promise<boolean>} whether the user entered a key
 */
export function promptForKey(role, why, sentAt = performance.now()) {
  if (prompting === null && sentAt <= declinedAt) return Promise.resolve(false);
  prompting ??= showDialog(role, why).finally(() => {
    prompting = null;
  });
  return prompting;
}

// A link that is opened in a tab that shows the same page does not load it again. Registered before
// the page's own listener, which writes its state over the fragment.
addEventListener("popstate", () => {
  if (takeTokenFromLink() !== null) location.reload();
});

/** @param {Key | null} key */
function holdKey(key) {
  held = key;
  if (key === null) sessionStorage.removeItem(SLOT);
  else storeKey(key);
  for (const listener of listeners) listener();
}

/** @param {Key} key */
function storeKey(key) {
  if (mayBeStored(key)) sessionStorage.setItem(SLOT, JSON.stringify(key));
}

/** @param {Key} key */
function mayBeStored(key) {
  return key.role === "read" || LOCAL_TOKEN.test(key.value);
}

/** @returns {Key | null} */
function loadStoredKey() {
  try {
    const key = JSON.parse(sessionStorage.getItem(SLOT) ?? "null");
    return key !== null && mayBeStored(key) ? key : null;
  } catch {
    return null;
  }
}

/**
 * Stores the local token of the fragment, and removes it from the address and the history.
 *
 * @returns {Key | null}
 */
function takeTokenFromLink() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const value = fragment.get("token");
  if (value === null) return null;
  fragment.delete("token");
  window.history.replaceState(null, "", `#${fragment}`);
  if (!LOCAL_TOKEN.test(value)) return null;
  /** @type {Key} */
  const key = { value, role: "admin", name: "loopback" };
  storeKey(key);
  return key;
}

/** @returns {Promise<boolean>} */
function showDialog(role, why) {
  const dialog = document.createElement("dialog");
  dialog.className = "card";
  dialog.setAttribute("aria-labelledby", "key-heading");
  const submit = async (event) => {
    event.preventDefault();
    const field = event.target.querySelector("input");
    show("");
    const { key, problem } = await checkKey(field.value.trim());
    // The user may have cancelled meanwhile.
    if (!dialog.open) return;
    if (key !== null && (role !== "admin" || key.role === "admin")) {
      holdKey(key);
      dialog.close("held");
    } else {
      show(problem ?? "this key can only read; enter one with the role admin");
      field.select();
    }
  };
  const show = (refusal) =>
    render(
      html`<form method="dialog" @submit=${submit}>
        <h2 id="key-heading">${role === "admin" ? "An admin key is needed" : "A key is needed"}</h2>
        <p id="key-why" class="note">${why}</p>
        <label for="key-field">API key</label>
        <input id="key-field" type="password" autocomplete="off" spellcheck="false" required
          aria-describedby="key-why key-refused">
        <p id="key-refused" class="refusal" role="alert">${refusal}</p>
        <p class="note">
          A read key or a local token stays until this tab is closed; an admin key only until you
          leave this page.
        </p>
        <div class="buttons">
          <button type="submit" class="main">Use key</button>
          <button type="button" @click=${() => dialog.close("cancelled")}>Cancel</button>
        </div>
      </form>`,
      dialog,
    );
  show("");
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

/**
 * Checks a key with the service.
 *
 * @param {string} value
 * @returns {Promise<{key: Key | null, problem?: string}>}
 */
async function checkKey(value) {
  try {
    const response = await fetch(new URL("../v1/caller", document.baseURI), {
      headers: { Accept: "application/json", Authorization: `Bearer ${value}` },
    });
    const content = await response.json();
    if (!response.ok) return { key: null, problem: content.detail };
    return { key: { value, role: content.role, name: content.name } };
  } catch {
    // A character that no header can carry, or the service cannot be reached.
    return { key: null, problem: "the key could not be checked; check it, then try again" };
  }
}

/** @param {Key} key */
function describe(key) {
  return LOCAL_TOKEN.test(key.value) ? "local token" : `${key.role} key ${key.name}`;
}

/** The element of the banner that shows which key is held, and changes it. */
export function keyControl() {
  const control = document.createElement("span");
  control.className = "key";
  const change = () => {
    if (held !== null) forgetKey();
    else promptForKey("read", "Create a key with: kairos keys create");
  };
  const show = () =>
    render(
      html`<span class="note">${held === null ? "" : describe(held)}</span>
        <button type="button" @click=${change}>${held === null ? "Enter a key" : "Forget key"}</button>`,
      control,
    );
  onKeyChange(show);
  show();
  return control;
}

// @ts-check
/** The card "Active versions": which versions serve, and the dialogs that change it. */

import { call, Problem } from "../shell/api.js";
import { live } from "../shell/directives.js";
import { formatPercent } from "../shell/format.js";
import { html, nothing, render } from "../shell/html.js";
import { versionLabel } from "../widgets/versions.js";
import { currentVersion } from "./data.js";
import { describeTraffic } from "./words.js";
import { versionName } from "./versions_card.js";

/**
 * @typedef {import("./data.js").Model} Model
 * @typedef {import("./data.js").ModelsState} ModelsState
 * @typedef {import("./data.js").Traffic} Traffic
 */

export class ServingCard {
  #root;
  #handlers;
  /** @type {ModelsState | null} */
  #serving = null;
  #done = "";

  /**
   * @param {HTMLElement} root
   * @param {{rollBack: () => void, setTraffic: () => void}} handlers
   */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    this.#render();
  }

  /** @param {ModelsState} serving */
  show(serving) {
    this.#serving = serving;
    this.#render();
  }

  /**
   * Shows what the last change did.
   *
   * @param {string} sentence
   */
  showDone(sentence) {
    this.#done = sentence;
    this.#render();
  }

  #render() {
    const { rollBack, setTraffic } = this.#handlers;
    render(
      html`
        <div class="heading-row">
          <h2 id="serving-heading">Active versions</h2>
          <div class="controls">
            <button id="roll-back" type="button" class="plain" @click=${rollBack}>Roll back…</button>
            <button id="set-traffic" type="button" class="plain"
               ?disabled=${this.#serving?.traffic === null} @click=${setTraffic}>Set traffic…</button>
            <div class="take-away"></div>
          </div>
        </div>
        <p class="note">The versions that recommend to customers, and the version that a rollback activates.</p>
        <dl id="serving" class="pairs facts">${this.#serving ? facts(this.#serving) : nothing}</dl>
        <p id="done" class="note done">${this.#done}</p>`,
      this.#root,
    );
  }
}

/** @param {ModelsState} serving */
function facts({ models, traffic, changes, rollbackVersion }) {
  const current = currentVersion(models);
  const serving = models.find((model) => model.is_serving)?.version ?? null;
  return [
    fact("Current", versionName(current)),
    serving === current ? nothing : fact("Serving here", versionName(serving)),
    fact("Challenger", traffic === null ? NOT_KNOWN : describeChallenger(traffic)),
    fact("Shadow", traffic === null ? NOT_KNOWN : describeShadow(traffic)),
    fact("Rollback to", changes === null ? NOT_KNOWN : versionName(rollbackVersion)),
  ];
}

const NOT_KNOWN = "not known: it could not be loaded";

/** @param {Traffic} traffic */
const describeChallenger = ({ challenger, share }) =>
  challenger === null
    ? "none"
    : html`${versionName(challenger)} serves ${formatPercent(share)} of the customers in place of the current one`;

/** @param {Traffic} traffic */
const describeShadow = ({ shadow }) =>
  shadow === null
    ? "none"
    : html`${versionName(shadow)} receives the same requests; its recommendations are never returned`;

const fact = (name, value) => html`<dt>${name}</dt><dd>${value}</dd>`;

const CHECKED_FIRST =
  "The version is opened and verified first; if that fails, the active version is unchanged. " +
  "Every process of the service follows within a poll interval and the time that it takes to open the version.";

/**
 * Activates a version once the user confirms it.
 *
 * @param {string} version
 * @param {ModelsState} serving
 * @returns {Promise<string | null>} a sentence on what was done; null if the user cancelled
 */
export const activate = (version, { models }) =>
  changeCurrent({
    heading: "Activate this version?",
    effect: describeSwitch(version, currentVersion(models)),
    verb: "Activate",
    path: `v1/models/${encodeURIComponent(version)}/activate`,
  });

/**
 * Activates the version before the current one once the user confirms it.
 *
 * @param {ModelsState} serving
 * @returns {Promise<string | null>} a sentence on what was done; null if the user cancelled
 */
export const rollBack = ({ models, rollbackVersion }) =>
  changeCurrent({
    heading: "Roll back?",
    effect:
      rollbackVersion === null
        ? "The version that a rollback activates is not known, or there is none: the service may refuse."
        : describeSwitch(rollbackVersion, currentVersion(models)),
    verb: "Roll back",
    path: "v1/models/rollback",
  });

async function changeCurrent({ heading, effect, verb, path }) {
  const changed = await confirmChange({
    heading,
    content: () => html`<p>${effect}</p><p>${CHECKED_FIRST}</p>`,
    verb,
    send: (reason) => call(path, { body: { reason } }),
  });
  return (
    changed && `Done: ${changed.version} is current now, in place of ${changed.previous_version ?? "none"}.`
  );
}

const describeSwitch = (version, current) =>
  current === null
    ? html`<span>${versionName(version)} becomes current, where none is now.</span>`
    : html`<span>${versionName(version)} becomes current in place of ${versionName(current)}.</span>`;

/**
 * Sets the challenger, its share and the shadow once the user confirms them.
 *
 * @param {ModelsState} serving
 * @returns {Promise<string | null>} a sentence on what was done; null if the user cancelled
 */
export async function setTraffic({ models, traffic }) {
  // A share that is no whole percent is kept until the slider is moved.
  if (traffic === null) return null;
  let { challenger, share, shadow } = traffic;
  const read = () => ({ challenger, share: challenger === null ? 0 : share, shadow });
  const content = (update) => {
    const percents = challenger === null ? 0 : toPercents(share);
    return html`
      <label for="challenger">Challenger</label>
      ${versionSelect("challenger", challenger, models, (version) => {
        challenger = version;
        update();
      })}
      <div class="share">
        <label for="share">Share of the customers</label><output for="share">${percents} %</output>
      </div>
      <input id="share" type="range" min="0" max="100" step="1" .value=${live(String(Math.round(share * 100)))}
             ?disabled=${challenger === null} aria-valuetext=${`${percents} % of the customers`}
             @input=${({ target }) => {
               share = Number(target.value) / 100;
               update();
             }}>
      <label for="shadow">Shadow</label>
      ${versionSelect("shadow", shadow, models, (version) => {
        shadow = version;
        update();
      })}
      <p class="explanation">${explainTraffic(read(), currentVersion(models))}</p>`;
  };
  const set = await confirmChange({
    heading: "Set the challenger and the shadow",
    content,
    verb: "Set traffic",
    send: (reason) => call("v1/models/traffic", { method: "PUT", body: { ...read(), reason } }),
  });
  return set && `Done: ${describeTraffic(set)}.`;
}

const toPercents = (share) => Number((share * 100).toFixed(2));

/** A select of versions or none. The current version is offered only where it has the role already. */
function versionSelect(id, chosen, models, choose) {
  const offered = models.filter(
    (model) => (model.refused === null && !model.is_current) || model.version === chosen,
  );
  const isUnknown = chosen !== null && !offered.some((model) => model.version === chosen);
  const option = (value, label) =>
    html`<option value=${value} .selected=${live(value === (chosen ?? ""))}>${label}</option>`;
  return html`<select id=${id} @change=${({ target }) => choose(target.value || null)}>
    ${option("", "none")}
    ${offered.map((model) => option(model.version, versionLabel(model)))}
    ${isUnknown ? option(chosen, `${chosen} (not published)`) : nothing}
  </select>`;
}

/**
 * @param {Traffic} traffic
 * @param {string | null} current
 */
function explainTraffic({ challenger, share, shadow }, current) {
  const inPlace = current === null ? nothing : html`, in place of ${versionName(current)}`;
  const first =
    challenger === null
      ? "The current version serves all customers."
      : html`${versionName(challenger)} serves ${toPercents(share)} % of the customers, always the same
          ones${inPlace}.`;
  const second =
    shadow === null
      ? nothing
      : html` ${versionName(shadow)} receives the same requests; its recommendations are compared and counted,
          never returned.`;
  return [first, second];
}

const LONGEST_REASON = 500;

/**
 * Opens a dialog that explains a change and takes a reason. If the change fails, the dialog stays open
 * and shows the problem.
 *
 * @param {object} options
 * @param {string} options.heading
 * @param {(update: () => void) => any} options.content the dialog's own template; `update` renders it
 *   again
 * @param {string} options.verb on the button that confirms
 * @param {(reason: string | null) => Promise<any>} options.send
 * @returns {Promise<any>} the response to `send`; null if the user cancelled
 */
function confirmChange({ heading, content, verb, send }) {
  const dialog = document.createElement("dialog");
  dialog.className = "card";
  dialog.setAttribute("aria-labelledby", "confirm-heading");
  const field = () => /** @type {HTMLInputElement} */ (dialog.querySelector("#reason"));
  /** @type {any} */
  let response = null;
  let refusal = "";
  let isSending = false;
  const submit = async (event) => {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    refusal = "";
    show();
    try {
      response = await send(field().value.trim() || null);
      dialog.close();
    } catch (error) {
      if (!(error instanceof Problem)) console.error(error);
      refusal = error.message;
    }
    isSending = false;
    show();
  };
  // The confirming button is not disabled while sending: the dialog for a key returns the focus to it.
  const show = () =>
    render(
      html`<form method="dialog" aria-busy=${isSending} @submit=${submit}>
        <h2 id="confirm-heading">${heading}</h2>
        ${content(show)}
        <label for="reason">Reason (optional)</label>
        <input id="reason" type="text" maxlength=${LONGEST_REASON} autocomplete="off"
               aria-describedby="reason-note confirm-refused">
        <p id="reason-note" class="note">One line, kept in the audit trail.</p>
        <p id="confirm-refused" class="refusal" role="alert">${refusal}</p>
        <div class="buttons">
          <button type="submit" class="main" aria-disabled=${isSending}>${verb}</button>
          <button type="button" ?disabled=${isSending} @click=${() => dialog.close()}>Cancel</button>
        </div>
      </form>`,
      dialog,
    );
  // A request in flight cannot be cancelled.
  dialog.addEventListener("cancel", (event) => {
    if (isSending) event.preventDefault();
  });
  show();
  document.body.append(dialog);
  dialog.showModal();
  field().focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(response);
    });
  });
}

// @ts-check
/** A menu that takes a card away: a picture, its numbers, the requests behind it, a link. */

import { byId, html, nothing, render } from "../shell/html.js";
import { announce } from "../shell/page.js";
import { toPng, toSvg } from "./take_away_picture.js";
import { toCsv, toCurl, toPython } from "./take_away_text.js";

/**
 * @typedef {object} Taken what can be taken away
 * @property {string} title of the picture
 * @property {string} [caption] of the picture: what it is of, such as version, item, customer, point in time
 * @property {string} name of the files, without a suffix
 * @property {import("./take_away_picture.js").Drawable | null} chart null: the picture is a table
 * @property {Record<string, any>[]} rows the numbers, by column
 * @property {import("../shell/api.js").ApiRequest[]} requests those behind the card
 *
 * @typedef {{why: string}} Nothing why there is nothing to take away
 */

const REQUESTS = ["The request", "The requests"];
const nameRequests = ({ requests }, language) => `${REQUESTS[requests.length > 1 ? 1 : 0]} as ${language}`;

/** @type {[string, (taken: Taken) => any][]} */
const ENTRIES = [
  ["Picture (PNG)", async (taken) => save(await toPng(await toSvg(taken)), `${taken.name}.png`)],
  [
    "Picture (SVG)",
    async (taken) => save(new Blob([(await toSvg(taken)).text], { type: "image/svg+xml" }), `${taken.name}.svg`),
  ],
  ["Numbers (CSV)", (taken) => save(new Blob([toCsv(taken.rows)], { type: "text/csv" }), `${taken.name}.csv`)],
  ["Request as curl", (taken) => showText(nameRequests(taken, "curl"), toCurl(taken.requests))],
  ["Request as Python", (taken) => showText(nameRequests(taken, "Python"), toPython(taken.requests))],
  ["Link to this view", () => showText("A link to this view", location.href)],
];

/** Fills the element `.take-away` of a card. */
export class TakeAway {
  #menu = document.createElement("details");
  #take;

  /**
   * @param {any} card
   * @param {() => Taken | Nothing} take returns what is on display
   */
  constructor(card, take) {
    this.#take = take;
    this.#menu.className = "menu";
    // Of menus with one name the browser keeps one open.
    this.#menu.setAttribute("name", "take-away");
    this.#render(nothing);
    card.querySelector(".take-away").append(this.#menu);
    this.#menu.addEventListener("toggle", () => this.#render(this.#menu.open ? this.#list() : nothing));
    document.addEventListener("pointerdown", (event) => {
      if (!this.#menu.contains(/** @type {Node} */ (event.target))) this.#menu.open = false;
    });
    this.#menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.#menu.open = false;
      this.#menu.querySelector("summary")?.focus();
    });
  }

  #render(content) {
    render(html`<summary>Take away</summary>${content}`, this.#menu);
  }

  /** The entries; a card without numbers has the reason in their place. */
  #list() {
    const taken = this.#take();
    if ("why" in taken) return showReason(taken.why);
    if (taken.rows.length === 0) return showReason("There is nothing to take away: the card has no numbers.");
    return html`<ul>${ENTRIES.map(
      ([label, act]) => html`<li><button type="button" @click=${() => this.#run(act, taken)}>${label}</button></li>`,
    )}</ul>`;
  }

  async #run(act, taken) {
    try {
      await act(taken);
      this.#menu.open = false;
    } catch (error) {
      console.error(error);
      this.#render(showReason(`That failed: ${error.message}.`));
    }
  }
}

/** The name of a file of a card, without a suffix: a word, then what it is of. */
export const toFileName = (word, ...of) =>
  ["kairos", word, ...of.map((one) => one.replace(/[^\w-]+/g, "_"))].join("-");

const showReason = (why) => html`<div class="panel"><p class="note" role="status">${why}</p></div>`;

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  announce(`${name} is saved.`);
}

function showText(title, text) {
  const dialog = document.createElement("dialog");
  dialog.className = "card copied";
  dialog.setAttribute("aria-labelledby", "copied-heading");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  const copy = async () => {
    const field = byId("copied-text");
    field.select();
    try {
      await navigator.clipboard.writeText(text);
      byId("copied-note").textContent = "Copied.";
    } catch {
      byId("copied-note").textContent = "The text is selected; copy it by keyboard.";
    }
  };
  render(
    html`<form method="dialog">
      <h2 id="copied-heading">${title}</h2>
      <textarea id="copied-text" rows="8" readonly aria-label=${title} .value=${text}></textarea>
      <p id="copied-note" class="note" role="status">${
        text.includes("KAIROS_API_KEY") ? "Set KAIROS_API_KEY first: to a key of the service, or to the token in the link that kairos dashboard prints." : nothing
      }</p>
      <div class="buttons">
        <button type="button" class="main" @click=${copy}>Copy</button>
        <button type="submit">Close</button>
      </div>
    </form>`,
    dialog,
  );
  dialog.showModal();
}

// @ts-check
/** The verdict at the top of the page, and the cards that come forward because they need attention. */

import { html, nothing, render } from "../shell/html.js";
import { severity } from "./panels.js";

/**
 * @typedef {import("./panels.js").Status} Status
 *
 * @typedef {object} Subject a card, a panel, or what stands for an endpoint
 * @property {string} name
 * @property {HTMLElement} node has an id; focusable by script
 * @property {Comment | null} home where the node belongs while all is well; null if it never moves
 * @property {boolean} isForward
 * @property {boolean} wasOpen whether its facts were open before it came forward
 */

const RATES = "Rates";

/** States in words, and shows what needs attention above everything else, the worst first. */
export class Verdict {
  #row;
  #line;
  #forward;
  /** @type {Subject[]} in the order of the page */
  #subjects = [];

  /** @param {Record<"row" | "line" | "forward", HTMLElement>} elements */
  constructor({ row, line, forward }) {
    this.#row = row;
    this.#line = line;
    this.#forward = forward;
    render("Reading the state of the service…", line);
  }

  /**
   * Adds a subject whose status counts.
   *
   * @param {string} name
   * @param {HTMLElement} node
   * @param {{moves?: boolean}} [options] whether it comes forward
   */
  add(name, node, { moves = true } = {}) {
    const home = moves ? document.createComment("") : null;
    if (home !== null) node.before(home);
    this.#subjects.push({ name, node, home, isForward: false, wasOpen: false });
  }

  /**
   * Shows the verdict, and moves the cards.
   *
   * @param {Map<string, Status | null>} statuses by name
   * @param {{isEarly: boolean, isPaused: boolean}} state whether rates are not yet compared with
   *   their limits, and whether all this is as of the last poll
   */
  show(statuses, { isEarly, isPaused }) {
    const statusOf = ({ name }) => statuses.get(name) ?? null;
    const concerning = this.#subjects
      .filter((subject) => severity(statusOf(subject)) > severity("ok"))
      .sort((one, other) => severity(statusOf(other)) - severity(statusOf(one)));
    const unread = this.#subjects.filter((subject) => statusOf(subject) === "forbidden");
    const isKnown = unread.length === 0 && !isEarly;
    this.#row.dataset.status = concerning.length > 0 ? statusOf(concerning[0]) : isKnown ? "ok" : "none";
    const count = concerning.length === 1 ? "1 thing needs" : `${concerning.length} things need`;
    const list = concerning.map(
      (subject, index) => html`${index > 0 ? ", " : ""}<a href="#${subject.node.id}"
        @click=${(event) => this.#goTo(event, subject)}>${subject.name}</a> (${statusOf(subject)})`,
    );
    render(
      html`${concerning.length > 0 ? html`${count} attention: ${list}.` : describeCalm(unread, isEarly)}
        ${concerning.length > 0 && unread.length > 0 ? describeUnread(unread) : nothing}
        ${isPaused ? html`<span class="note">Polling is paused: this is as of the last poll.</span>` : nothing}`,
      this.#line,
    );
    this.#arrange(concerning.filter(({ home }) => home !== null));
  }

  /**
   * Moves the subjects to the front in this order, and all others back to where they belong.
   *
   * @param {Subject[]} concerning
   */
  #arrange(concerning) {
    for (const subject of this.#subjects) {
      if (subject.isForward && !concerning.includes(subject) && !isInUse(subject.node)) retire(subject);
    }
    for (const [index, subject] of concerning.entries()) {
      const next = this.#forward.children[index] ?? null;
      if (next !== subject.node) move(subject.node, () => this.#forward.insertBefore(subject.node, next));
      if (!subject.isForward) open(subject);
    }
  }

  /** Goes to a card without a change of the address, whose fragment is the state of the page. */
  #goTo(event, { node }) {
    event.preventDefault();
    node.scrollIntoView({ block: "nearest" });
    node.focus({ preventScroll: true });
  }
}

/**
 * @param {Subject[]} unread what the key may not read
 * @param {boolean} isEarly
 */
function describeCalm(unread, isEarly) {
  if (unread.length > 0) return html`Nothing that is known needs attention. ${describeUnread(unread)}`;
  if (isEarly) return "Nothing needs attention so far; rates follow with the next polls.";
  return "All is well.";
}

/** @param {Subject[]} unread */
function describeUnread(unread) {
  if (unread.some(({ name }) => name === RATES)) return "Everything but Ready needs a key that may read it.";
  return `Not for this key: ${unread.map(({ name }) => name).join(", ")}.`;
}

/** @param {Subject} subject */
function open(subject) {
  const details = findFacts(subject);
  subject.isForward = true;
  subject.wasOpen = details?.open ?? false;
  if (details !== null) details.open = true;
}

/** @param {Subject} subject */
function retire(subject) {
  const details = findFacts(subject);
  if (details !== null) details.open = subject.wasOpen;
  subject.isForward = false;
  subject.home?.after(subject.node);
}

/** @param {Subject} subject */
const findFacts = ({ node }) => /** @type {HTMLDetailsElement | null} */ (node.querySelector("details.more"));

/** A card that is being read or used stays where it is. */
const isInUse = (node) => node.matches(":hover") || node.contains(document.activeElement);

/**
 * Moves a node, which keeps the focus that is within it.
 *
 * @param {HTMLElement} node
 * @param {() => void} insert
 */
function move(node, insert) {
  /** @type {any} */
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  insert();
  focused?.focus({ preventScroll: true });
}

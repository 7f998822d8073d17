// @ts-check
/** A combobox: a text field that offers what is found for its text. */

import { LatestRequest } from "../shell/api.js";
import { html, render } from "../shell/html.js";
import { announce, clearProblem, showProblem } from "../shell/page.js";

/**
 * @template Option
 * @typedef {object} Source what a combobox offers
 * @property {string} label of the list of options
 * @property {boolean} offersAll whether the empty text has options, too
 * @property {(text: string, signal: AbortSignal) => Promise<Option[]>} find
 * @property {(option: Option) => string} keyOf equal for equal options
 * @property {(option: Option) => string} textOf what the field holds once the option is taken
 * @property {(option: Option) => any} show the content of the option
 * @property {(options: Option[]) => string} describe announces the options
 */

/** @template Option */
export class Combobox {
  #input;
  #list = document.createElement("ul");
  #source;
  #choose;
  /** @type {Option[]} */
  #options = [];
  /** The index of the highlighted option; -1 for none. */
  #active = -1;
  #isOpen = false;
  /** Whether Enter was pressed before the list arrived. */
  #takesFirst = false;
  #latest;

  /**
   * @param {any} input a text field with an id, labelled by an element outside it
   * @param {Source<Option>} source
   * @param {object} options
   * @param {(option: Option) => void} options.choose called with the option that is taken
   */
  constructor(input, source, { choose }) {
    this.#source = source;
    this.#input = input;
    this.#choose = choose;
    this.#list.id = `${input.id}-options`;
    this.#list.className = "options";
    this.#list.setAttribute("role", "listbox");
    this.#list.setAttribute("aria-label", source.label);
    this.#list.hidden = true;
    this.#latest = new LatestRequest({
      send: source.find,
      show: (options, text) => {
        clearProblem(source.label);
        this.#show(options, text);
      },
      fail: (error) => this.#fail(error),
      pause: 120,
    });
    const frame = document.createElement("div");
    frame.className = "item-search";
    input.replaceWith(frame);
    frame.append(input, this.#list);
    this.#listen();
  }

  /** Empties the field. */
  clear() {
    this.#input.value = "";
    this.#close();
  }

  #listen() {
    const properties = {
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-controls": this.#list.id,
      "aria-expanded": "false",
    };
    for (const [name, value] of Object.entries(properties)) this.#input.setAttribute(name, value);
    this.#input.autocomplete = "off";
    this.#input.spellcheck = false;
    this.#input.addEventListener("input", () => this.#search());
    if (this.#source.offersAll) {
      this.#input.addEventListener("focus", () => {
        this.#input.select();
        this.#latest.request("");
      });
    }
    this.#input.addEventListener("blur", () => this.#close());
    this.#input.addEventListener("keydown", (event) => this.#press(event));
    // Keeps the focus in the field, which would otherwise be lost before the click.
    this.#list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  #search() {
    this.#takesFirst = false;
    const text = this.#input.value.trim();
    if (text === "" && !this.#source.offersAll) this.#close();
    else this.#latest.request(text);
  }

  #press(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!this.#isOpen) this.#search();
      else this.#move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape" && this.#isOpen) {
      event.preventDefault();
      this.#close();
    } else if (event.key === "Enter" && (this.#isOpen || !this.#latest.isIdle)) {
      event.preventDefault();
      // Enter takes the first option, as an address bar does, even before the list is there.
      if (this.#latest.isIdle) this.#take(Math.max(this.#active, 0));
      else this.#takesFirst = true;
    }
  }

  /** Moves the highlight by one; beyond either end nothing is highlighted. */
  #move(by) {
    const positions = this.#options.length + 1;
    this.#active = ((this.#active + 1 + by + positions) % positions) - 1;
    this.#render();
  }

  #show(options, text) {
    if (document.activeElement !== this.#input) return;
    const { keyOf, describe } = this.#source;
    const highlighted = this.#options[this.#active];
    this.#options = options;
    // A newer list keeps the highlight on its option.
    this.#active = highlighted
      ? options.findIndex((option) => keyOf(option) === keyOf(highlighted))
      : -1;
    this.#isOpen = true;
    this.#render();
    announce(describe(options));
    // Not of a list for what was typed before.
    const isCurrent = text === this.#input.value.trim();
    if (this.#takesFirst && isCurrent && options.length > 0) this.#take(0);
  }

  /** Shows that the search failed, with a button that searches again. */
  #fail(error) {
    this.#close();
    const retry = () => {
      this.#input.focus();
      this.#latest.request(this.#input.value.trim());
    };
    showProblem(error, { part: this.#source.label, retry });
  }

  #render() {
    render(
      this.#options.map((option, index) => this.#option(option, index)),
      this.#list,
    );
    this.#list.hidden = !this.#isOpen;
    this.#input.setAttribute("aria-expanded", String(this.#isOpen));
    const active = this.#list.children[this.#active];
    if (active) {
      this.#input.setAttribute("aria-activedescendant", active.id);
      active.scrollIntoView({ block: "nearest" });
    } else {
      this.#input.removeAttribute("aria-activedescendant");
    }
  }

  #option(option, index) {
    return html`<li id=${`${this.#list.id}-${index}`} role="option"
        aria-selected=${index === this.#active} @click=${() => this.#take(index)}
      >${this.#source.show(option)}</li>`;
  }

  #take(index) {
    const option = this.#options[index];
    if (option === undefined) return;
    this.#input.value = this.#source.textOf(option);
    this.#close();
    this.#choose(option);
  }

  #close() {
    this.#latest.cancel();
    this.#takesFirst = this.#isOpen = false;
    this.#active = -1;
    this.#render();
  }
}

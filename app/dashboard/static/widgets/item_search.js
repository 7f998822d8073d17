// @ts-check
/** A combobox that finds items by part of their title, or takes an id. */

import { call, LatestRequest } from "../shell/api.js";
import { pluralize } from "../shell/format.js";
import { html, render } from "../shell/html.js";
import { announce, showProblem } from "../shell/page.js";

const OFFERED = 12;

/** Stored items whose titles contain `title`, ordered by id. */
const listItems = async (title, signal) =>
  (await call("v1/items", { query: { q: title, limit: OFFERED }, signal })).items;

export class ItemSearch {
  #input;
  #list = document.createElement("ul");
  #choose;
  /** The options: items, then the text itself as an id. */
  #items = [];
  /** The index of the highlighted option; -1 for none. */
  #active = -1;
  #isOpen = false;
  /** Whether Enter was pressed before the list arrived. */
  #takesFirst = false;
  #latest;

  /**
   * @param {any} input a text field with an id, labelled by an element outside it
   * @param {object} options
   * @param {(item: {item_id: string, title: string | null, categories: string[]}) => void}
   *   options.choose called with an item of `GET /v1/items`; for an id that was typed with
   *   `item_id` and no title, whether or not the item exists
   * @param {(error: Error) => void} [options.fail] called if items cannot be listed
   */
  constructor(input, { choose, fail = showProblem }) {
    this.#input = input;
    this.#choose = choose;
    this.#list.id = `${input.id}-options`;
    this.#list.className = "options";
    this.#list.setAttribute("role", "listbox");
    this.#list.setAttribute("aria-label", "Items");
    this.#list.hidden = true;
    this.#latest = new LatestRequest({
      send: listItems,
      show: (items, title) => this.#show(items, title),
      fail: (error) => {
        this.#close();
        fail(error);
      },
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
    this.#input.addEventListener("blur", () => this.#close());
    this.#input.addEventListener("keydown", (event) => this.#press(event));
    // Keeps the focus in the field, which would otherwise be lost before the click.
    this.#list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  #search() {
    this.#takesFirst = false;
    const title = this.#input.value.trim();
    if (title === "") this.#close();
    else this.#latest.request(title);
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
    const positions = this.#items.length + 1;
    this.#active = ((this.#active + 1 + by + positions) % positions) - 1;
    this.#render();
  }

  #show(items, title) {
    if (document.activeElement !== this.#input) return;
    const highlighted = this.#items[this.#active]?.item_id;
    this.#items = [...items, { item_id: title, title: null, categories: [], isTyped: true }];
    // A newer list keeps the highlight on its item.
    this.#active = this.#items.findIndex((item) => item.item_id === highlighted);
    this.#isOpen = true;
    this.#render();
    const most = items.length === OFFERED ? "the first " : "";
    announce(items.length ? `${most}${pluralize(items.length, "item")}` : "no title contains this");
    if (this.#takesFirst) this.#take(0);
  }

  #render() {
    render(
      this.#items.map((item, index) => this.#option(item, index)),
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

  #option(item, index) {
    return html`<li id=${`${this.#list.id}-${index}`} role="option"
        aria-selected=${index === this.#active} @click=${() => this.#take(index)}>
      ${
        item.isTyped
          ? html`the id <code>${item.item_id}</code>`
          : html`<span class="title">${item.title ?? "(no title)"}</span><code class="note">${item.item_id}</code>`
      }</li>`;
  }

  #take(index) {
    const { isTyped, ...item } = this.#items[index];
    this.#input.value = isTyped ? item.item_id : (item.title ?? item.item_id);
    this.#close();
    this.#choose(item);
  }

  #close() {
    this.#latest.cancel();
    this.#takesFirst = this.#isOpen = false;
    this.#active = -1;
    this.#render();
  }
}

/** A field that finds items by part of their title, or takes an id: a combobox with a list. */

import { call, LatestRequest } from "../shell/api.js";
import { pluralize } from "../shell/format.js";
import { element } from "../shell/html.js";
import { announce, showProblem } from "../shell/page.js";

const OFFERED = 12;

/** Stored items whose titles contain `title`, by id. */
const listItems = async (title, signal) =>
  (await call("v1/items", { query: { q: title, limit: OFFERED }, signal })).items;

export class ItemSearch {
  #input;
  #list;
  #choose;
  #items = [];
  #active = -1;
  #isWanted = false;
  #latest;

  /**
   * `input` is a text field with an id and a label that stands outside it. `choose(item)` is called
   * with an item as `GET /v1/items` has it; for an id that was typed, with `item_id` alone and no
   * title: nobody has looked whether there is such an item. `fail(error)`: items cannot be listed.
   */
  constructor(input, { choose, fail = showProblem }) {
    this.#input = input;
    this.#choose = choose;
    this.#list = element("ul", {
      id: `${input.id}-options`,
      class: "options",
      role: "listbox",
      "aria-label": "Items",
      hidden: true,
    });
    this.#latest = new LatestRequest({
      send: listItems,
      show: (items, title) => this.#show(items, title),
      fail: (error) => {
        this.#close();
        fail(error);
      },
      pause: 120,
    });
    const frame = element("div", { class: "item-search" });
    input.replaceWith(frame);
    frame.append(input, this.#list);
    this.#listen();
  }

  /** Empty the field. */
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
    // The field keeps the focus, which would otherwise be lost before the click is done.
    this.#list.addEventListener("mousedown", (event) => event.preventDefault());
    this.#list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#take(Number(option.dataset.place));
    });
  }

  #search() {
    this.#isWanted = false;
    const title = this.#input.value.trim();
    if (title === "") this.#close();
    else this.#latest.request(title);
  }

  #press(event) {
    const isOpen = !this.#list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) this.#search();
      else this.#move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      this.#close();
    } else if (event.key === "Enter" && (isOpen || !this.#latest.isIdle)) {
      event.preventDefault();
      // Enter picks what is on top, as an address bar does, even before the list is there.
      if (this.#latest.isIdle) this.#take(Math.max(this.#active, 0));
      else this.#isWanted = true;
    }
  }

  /** Up or down by one; beyond either end lies the field itself, where nothing is marked. */
  #move(by) {
    const places = this.#items.length + 1;
    this.#active = ((this.#active + 1 + by + places) % places) - 1;
    this.#mark();
  }

  #mark() {
    const options = [...this.#list.children];
    options.forEach((option, place) => option.setAttribute("aria-selected", place === this.#active));
    const active = options[this.#active];
    if (active) {
      this.#input.setAttribute("aria-activedescendant", active.id);
      active.scrollIntoView({ block: "nearest" });
    } else {
      this.#input.removeAttribute("aria-activedescendant");
    }
  }

  #show(items, title) {
    if (document.activeElement !== this.#input) return;
    const marked = this.#items[this.#active]?.item_id;
    this.#items = [...items, { item_id: title, title: null, categories: [], typed: true }];
    // A list that comes late leaves the mark on the item it is on.
    this.#active = this.#items.findIndex((item) => item.item_id === marked);
    this.#list.replaceChildren(...this.#items.map((item, place) => this.#option(item, place)));
    this.#list.hidden = false;
    this.#input.setAttribute("aria-expanded", "true");
    this.#mark();
    const most = items.length === OFFERED ? "the first " : "";
    announce(items.length ? `${most}${pluralize(items.length, "item")}` : "no title contains this");
    if (this.#isWanted) this.#take(0);
  }

  #option(item, place) {
    const children = item.typed
      ? ["the id ", element("code", {}, item.item_id)]
      : [
          element("span", { class: "title" }, item.title ?? "(no title)"),
          element("code", { class: "note" }, item.item_id),
        ];
    return element(
      "li",
      { id: `${this.#list.id}-${place}`, role: "option", "data-place": place, "aria-selected": "false" },
      ...children,
    );
  }

  #take(place) {
    const { typed, ...item } = this.#items[place];
    this.#input.value = typed ? item.item_id : (item.title ?? item.item_id);
    this.#close();
    this.#choose(item);
  }

  #close() {
    this.#latest.cancel();
    this.#isWanted = false;
    this.#list.hidden = true;
    this.#active = -1;
    this.#input.setAttribute("aria-expanded", "false");
    this.#input.removeAttribute("aria-activedescendant");
  }
}

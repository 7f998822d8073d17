/** The form that adds an event which never happened. */

import { parseFieldValue, toFieldValue } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { ItemSearch } from "../widgets/item_search.js";
import { exactly } from "./exact_instants.js";

export class AddForm {
  #item = byId("add-item");
  #action = byId("add-action");
  #when = byId("add-when");
  #refusal = byId("add-refused");
  #chosen = null;
  #isTimed = false;
  #search;

  /** `add(event, title)` is called with `{itemId, action, at}`; it answers why not, or null. */
  constructor({ add }) {
    this.#search = new ItemSearch(this.#item, {
      choose: (item) => {
        this.#chosen = item;
        this.#refuse(null);
        this.#action.focus();
      },
    });
    this.#item.addEventListener("input", () => {
      this.#chosen = null;
    });
    this.#when.addEventListener("input", () => {
      this.#isTimed = true;
    });
    byId("add-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const why = this.#submit(add);
      this.#refuse(why);
      if (why === null) {
        this.#clear();
        this.#item.focus();
      }
    });
  }

  /** Begin with another history: `actions` are those it holds, the most frequent first. */
  begin(actions) {
    this.#action.value = actions[0] ?? "";
    byId("known-actions").replaceChildren(...actions.map((action) => element("option", { value: action })));
    this.#isTimed = false;
    this.#clear();
    this.#refuse(null);
  }

  /** An event is added at the query time, unless the reader says when. */
  follow(queryTime) {
    if (!this.#isTimed) this.#when.value = toFieldValue(queryTime);
  }

  #submit(add) {
    if (this.#chosen === null) {
      this.#item.focus();
      return "an event is about an item: choose one from the list, or its last line to take an id as typed";
    }
    const at = parseFieldValue(this.#when.value);
    if (at === null) {
      this.#when.focus();
      return "an event happens at an instant: fill in the day and the time";
    }
    const { item_id: itemId, title } = this.#chosen;
    return add({ itemId, action: this.#action.value.trim() || null, at: exactly(at) }, title);
  }

  #clear() {
    this.#chosen = null;
    this.#search.clear();
  }

  #refuse(why) {
    this.#refusal.textContent = why ?? "";
    this.#refusal.hidden = why === null;
  }
}

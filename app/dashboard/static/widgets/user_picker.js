/** The list of users, narrowed down by what their ids start with. */

import { listUsers } from "../shell/api.js";
import { byId, element } from "../shell/dom.js";
import { asDay } from "../shell/instants.js";
import { Latest } from "../shell/latest.js";

const SHOWN = 50;

export class UserPicker {
  #list = byId("user-list");
  #note = byId("user-list-note");
  #chosen = null;

  /** `choose(userId)` is called for a click; `fail(error)` where users cannot be listed. */
  constructor({ choose, fail }) {
    const search = byId("user-search");
    const latest = new Latest({
      ask: (prefix, signal) => listUsers(prefix, SHOWN, signal),
      show: (users) => this.#show(users),
      fail,
      pause: 120,
    });
    search.addEventListener("input", () => latest.want(search.value));
    // Enter picks what is on top, as an address bar does.
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#list.querySelector("button")?.click();
    });
    this.#list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) choose(button.value);
    });
  }

  /** List the first users; answers them. */
  async open() {
    const users = await listUsers("", SHOWN);
    this.#show(users);
    return users;
  }

  /** Mark a user as the one shown. */
  mark(userId) {
    this.#chosen = userId;
    for (const button of this.#list.querySelectorAll("button")) {
      if (button.value === userId) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  #show(users) {
    this.#list.replaceChildren(...users.map((user) => element("li", {}, userButton(user))));
    this.#note.textContent =
      users.length === 0
        ? "No user's id starts like this."
        : users.length === SHOWN
          ? `The first ${SHOWN}; type to narrow down.`
          : "";
    this.mark(this.#chosen);
  }
}

function userButton(user) {
  const count = `${user.events} ${user.events === 1 ? "event" : "events"}`;
  const last = `to ${asDay(Date.parse(user.last_event_at))}`;
  return element(
    "button",
    { type: "button", value: user.user_id },
    element("span", { class: "id" }, user.user_id),
    element("span", { class: "note" }, `${count} ${last}`),
  );
}

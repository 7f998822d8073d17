/** The list of users, narrowed down by what their ids start with. */

import { LatestRequest, listUsers } from "../shell/api.js";
import { formatDay } from "../shell/format.js";
import { byId, element } from "../shell/html.js";

const SHOWN = 50;

export class UserPicker {
  #list = byId("user-list");
  #note = byId("user-list-note");
  #chosen = null;

  /** `choose(userId)` is called for a click; `fail(error)` where users cannot be listed. */
  constructor({ choose, fail }) {
    const search = byId("user-search");
    const latest = new LatestRequest({
      send: (prefix, signal) => listUsers(prefix, SHOWN, signal),
      show: (users) => this.#show(users),
      fail,
      pause: 120,
    });
    search.addEventListener("input", () => latest.request(search.value));
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
  select(userId) {
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
    this.select(this.#chosen);
  }
}

function userButton(user) {
  const count = `${user.events} ${user.events === 1 ? "event" : "events"}`;
  const last = `to ${formatDay(Date.parse(user.last_event_at))}`;
  return element(
    "button",
    { type: "button", value: user.user_id },
    element("span", { class: "id" }, user.user_id),
    element("span", { class: "note" }, `${count} ${last}`),
  );
}

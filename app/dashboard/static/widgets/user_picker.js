// @ts-check
/** The list of users, filtered by a prefix of their ids. */

import { LatestRequest, listUsers } from "../shell/api.js";
import { formatDay, pluralize } from "../shell/format.js";
import { byId, html, nothing, render } from "../shell/html.js";

const SHOWN = 50;

/** Fills `#user-list` and listens to `#user-search`. */
export class UserPicker {
  #list = byId("user-list");
  #note = byId("user-list-note");
  #choose;
  #users = [];
  #chosen = null;

  /**
   * @param {object} options
   * @param {(userId: string) => void} options.choose called when the user is clicked
   * @param {(error: Error) => void} options.fail called if users cannot be listed
   */
  constructor({ choose, fail }) {
    this.#choose = choose;
    const search = byId("user-search");
    const latest = new LatestRequest({
      send: (prefix, signal) => listUsers(prefix, SHOWN, signal),
      show: (users) => this.#show(users),
      fail,
      pause: 120,
    });
    search.addEventListener("input", () => latest.request(search.value));
    // Enter takes the first user, as an address bar does.
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#list.querySelector("button")?.click();
    });
  }

  /** Lists the first users and returns them. */
  async open() {
    const users = await listUsers("", SHOWN);
    this.#show(users);
    return users;
  }

  /** Marks a user as the chosen one; null for none. */
  select(userId) {
    this.#chosen = userId;
    this.#render();
  }

  #show(users) {
    this.#users = users;
    this.#render();
    this.#note.textContent =
      users.length === 0
        ? "No customer's id starts with this."
        : users.length === SHOWN
          ? `The first ${SHOWN}; type to narrow down.`
          : "";
  }

  #render() {
    render(
      this.#users.map((user) => html`<li>${this.#button(user)}</li>`),
      this.#list,
    );
  }

  #button({ user_id: userId, events, last_event_at: last }) {
    const note = `${pluralize(events, "event")} to ${formatDay(Date.parse(last))}`;
    return html`<button type="button" value=${userId}
        aria-current=${userId === this.#chosen ? "true" : nothing}
        @click=${() => this.#choose(userId)}>
      <span class="id">${userId}</span><span class="note">${note}</span>
    </button>`;
  }
}

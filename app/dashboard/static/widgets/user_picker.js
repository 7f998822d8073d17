// @ts-check
/** The list of users, filtered by a prefix of their ids. */

import { LatestRequest, listUsers } from "../shell/api.js";
import { formatDay } from "../shell/format.js";
import { formatEventCount } from "./customer_search.js";
import { byId, failure, html, nothing, render } from "../shell/html.js";

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
   */
  constructor({ choose }) {
    this.#choose = choose;
    const search = byId("user-search");
    const latest = new LatestRequest({
      send: (prefix, signal) => listUsers(prefix, SHOWN, signal),
      show: (users) => this.#show(users),
      fail: (error) => this.#fail(error, () => latest.request(search.value)),
      pause: 120,
    });
    search.addEventListener("input", () => latest.request(search.value));
    // Enter takes the first user, as an address bar does.
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#list.querySelector("button")?.click();
    });
  }

  /**
   * Lists the first users and returns them; null if that fails, which the note then says.
   *
   * @param {() => void} retry called by a button of the note
   * @returns {Promise<any[] | null>}
   */
  async open(retry) {
    try {
      const users = await listUsers("", SHOWN);
      this.#show(users);
      return users;
    } catch (error) {
      this.#fail(error, retry);
      return null;
    }
  }

  /** Marks a user as the chosen one; null for none. */
  select(userId) {
    this.#chosen = userId;
    this.#render();
  }

  #show(users) {
    this.#users = users;
    this.#render();
    const note =
      users.length === 0
        ? byId("user-search").value === ""
          ? "No customer has events yet; send some to /v1/events."
          : "No customer's id starts with this."
        : users.length === SHOWN
          ? `The first ${SHOWN}; type to narrow down.`
          : "";
    render(note, this.#note);
  }

  /** Shows why there is no list. */
  #fail(error, retry) {
    this.#users = [];
    this.#render();
    render(failure(error.message, retry), this.#note);
  }

  #render() {
    render(
      this.#users.map((user) => html`<li>${this.#button(user)}</li>`),
      this.#list,
    );
  }

  #button({ user_id: userId, events, last_event_at: last }) {
    const note = `${formatEventCount(events)} to ${formatDay(Date.parse(last))}`;
    return html`<button type="button" value=${userId}
        aria-current=${userId === this.#chosen ? "true" : nothing}
        @click=${() => this.#choose(userId)}>
      <span class="id">${userId}</span><span class="note">${note}</span>
    </button>`;
  }
}

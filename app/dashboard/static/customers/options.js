// @ts-check
/** The options of the page: the fields of its requests, the advanced ones apart. */

import { byId, html, render } from "../shell/html.js";
import { versionLabel } from "../widgets/versions.js";

const COUNTS = [5, 10, 15, 20];

/**
 * Fills `#options`.
 *
 * @param {any} state
 * @param {object} given
 * @param {any[]} given.models the published versions
 * @param {(update: any) => void} given.change called with a change of the state
 */
export function showOptions(state, { models, change }) {
  const counts = [...new Set([...COUNTS, state.n])].sort((a, b) => a - b);
  const readable = models.filter((model) => model.refused === null);
  render(
    html`<details class="menu options-menu"><summary>Options</summary>
      <div class="panel">
        <label class="row">Items
          <select id="n" @change=${(event) => change({ n: Number(event.target.value) })}>
            ${counts.map((n) => html`<option value=${n} ?selected=${n === state.n}>${n}</option>`)}
          </select></label>
        <label><input id="exclude-seen" type="checkbox" .checked=${state.exclude_seen}
          @change=${(event) => change({ exclude_seen: event.target.checked })}> only items not in the history</label>
        <label><input id="withheld" type="checkbox" .checked=${state.query_time_withheld}
          @change=${(event) => change({ query_time_withheld: event.target.checked })}> ignore elapsed time</label>
        <label class="row">Version
          <select id="version" @change=${(event) => change({ model_version: event.target.value || null })}>
            <option value="" ?selected=${state.model_version === null}>the one that serves</option>
            ${readable.map(
              (model) => html`<option value=${model.version}
                ?selected=${model.version === state.model_version}>${versionLabel(model)}</option>`,
            )}
          </select></label>
        <fieldset class="advanced"><legend>Advanced</legend>
          <label class="row">Attention head
            <input id="head" type="number" min="1" max="64" placeholder="mean of all" .value=${state.head ?? ""}
              @change=${(event) => change({ head: event.target.value === "" ? null : Number(event.target.value) })}>
          </label>
          <button id="paste" class="plain" type="button">Paste a history</button>
          <p id="paste-note" class="note"></p>
        </fieldset>
      </div></details>`,
    byId("options"),
  );
}

/**
 * Fills `#compare`: nothing, another point in time, or another version.
 *
 * @param {any} state
 * @param {any[]} models
 * @param {string | null} served the version that answers
 */
export function showComparisons(state, models, served) {
  const others = models.filter((model) => model.refused === null && model.version !== served);
  const chosen = state.compare_version ?? (state.compare_time === null ? "" : "time");
  const option = (value, label) => html`<option value=${value} ?selected=${value === chosen}>${label}</option>`;
  render(
    [
      option("", "nothing"),
      option("time", "this point in time"),
      ...others.map((model) => option(model.version, versionLabel(model))),
    ],
    byId("compare"),
  );
  byId("compare").value = chosen;
}

// @ts-check
/** The keys of the page, which work wherever nothing is typed. */

/**
 * Calls the action of a key that is pressed outside of text fields. Space is left to what it presses.
 *
 * @param {Record<string, () => void>} actions by key
 */
export function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    const { ctrlKey, metaKey, altKey, key } = event;
    const target = /** @type {Element} */ (event.target);
    const action = actions[key];
    if (action === undefined || ctrlKey || metaKey || altKey || isTyping(target)) return;
    if (key === " " && isPressable(target)) return;
    event.preventDefault();
    action();
  });
}

const isTyping = (target) => target.matches("input:not([type=range],[type=checkbox]), textarea, select");
const isPressable = (target) => target.matches("button, summary, a, input");

/** Builds elements. Text goes in as text: nothing a caller passes is ever parsed as HTML. */

export const byId = (id) => document.getElementById(id);

/** An element with properties (`class`, `data-*` and `aria-*` as attributes) and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") made.className = value;
    else if (name.includes("-")) made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A title as a person reads it, or the id where there is none. */
export function itemName(title, itemId) {
  return title ? element("span", { class: "title" }, title) : element("code", {}, itemId);
}

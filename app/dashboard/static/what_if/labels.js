/** Names beside pictures, which leave little room. */

const CHARACTER_PIXELS = 6.5;
const SHARE = 0.42;

/** A name in at most two fifths of a width in pixels. */
export function shortened(name, width) {
  const most = Math.max(8, Math.floor((width * SHARE) / CHARACTER_PIXELS));
  const characters = [...name];
  return characters.length <= most ? name : `${characters.slice(0, most - 1).join("").trimEnd()}…`;
}

/** Which version came before which, as the audit trail tells. */

/**
 * The version that a rollback is expected to lead to, or null: by `changes`, newest first as the API
 * lists them. The service decides by the same rule, with all changes there are.
 */
export function versionBefore(changes, current) {
  const line = [];
  const follow = (version) => {
    if (version !== null && line.at(-1) !== version) line.push(version);
  };
  for (const change of changes.toReversed()) {
    if (change.change === "traffic") continue;
    // The pointer may have been moved without a word since the change before.
    follow(change.previous_version);
    if (change.change === "rollback") {
      while (line.length > 0 && line.at(-1) !== change.version) line.pop();
    }
    follow(change.version);
  }
  follow(current);
  return line.at(current === null ? -1 : -2) ?? null;
}

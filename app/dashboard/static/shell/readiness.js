// @ts-check
/** The response of `GET /health/ready` in words. */

/** The parts of the service whose state it holds. */
export const PARTS = ["model", "database", "writes", "tasks", "process"];

/**
 * The parts that are not in order, as a sentence; empty where all are.
 *
 * @param {Record<string, string>} readiness
 */
export function describeFaults(readiness) {
  const faulty = PARTS.filter((part) => part in readiness && readiness[part] !== "ok");
  if (faulty.length === 0) return "";
  return `Not in order: ${faulty.map((part) => `${part} (${readiness[part]})`).join(", ")}.`;
}

// Numbers, durations and instants as people read them.

const digits = (value, most) => value.toLocaleString("en", { maximumFractionDigits: most });

export function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  return digits(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4);
}

/** A large figure in two parts: the number, and what stands small beside it. */
export function large(value) {
  if (value === null || value === undefined) return ["–", ""];
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
    if (Math.abs(value) >= size) return [digits(value / (unit === "k" ? 1e3 : size), 1), unit];
  }
  return [digits(value, value >= 100 ? 0 : 1), ""];
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return ["–", ""];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (Math.abs(seconds) >= size) return [digits(seconds / size, 1), unit];
  }
  return Math.abs(seconds) >= 1 || seconds === 0 ? [digits(seconds, 1), "s"] : [digits(seconds * 1000, 0), "ms"];
}

export function bytes(size) {
  let value = size;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  while (value >= 1024 && units.length > 1) {
    value /= 1024;
    units.shift();
  }
  return [digits(value, units[0] === "B" ? 0 : 1), units[0]];
}

/** Seconds of work per second of event time. */
export function work(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds >= 1) return `${number(seconds)} s/s`;
  return seconds >= 1e-3 ? `${number(seconds * 1e3)} ms/s` : `${number(seconds * 1e6)} µs/s`;
}

export function share(part) {
  if (part === null || part === undefined) return "–";
  const percent = Math.round(100 * part);
  if (percent === 0 && part > 0) return "<1 %";
  return `${percent} %`;
}

export function instant(text) {
  return text ? String(text).replace("T", " ").replace(/(\+00:00|Z)$/, "").replace(/(\.\d{3})\d+$/, "$1") : "–";
}

export const clock = (text) => instant(text).slice(11, 19) || instant(text);

/** A round that waits for a sink that is down. */
export function waitText(one) {
  const stops = new Date(Date.parse(one.since) + 1000 * one.patience).toISOString();
  const tried = one.attempts === 1 ? "tried once" : `tried ${one.attempts} times`;
  return `Round ${one.round} waits for the sink “${one.sink}” since ${clock(one.since)} (${tried}): ${one.reason}. `
    + `Nothing is lost. The stream stops at ${clock(stops)} unless it comes back.`;
}

export const counted = (count, one, many) => `${digits(count, 0)} ${count === 1 ? one : many || one + "s"}`;

export function cell(value, type) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number") return /^(float|double|decimal)/.test(type || "") ? number(value) : digits(value, 4);
  if (/^timestamp/.test(type || "")) return instant(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

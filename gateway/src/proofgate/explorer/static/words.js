// Numbers, times, hashes and names as they are read.

const numbers = new Intl.NumberFormat("en", { useGrouping: true });

/** A whole number, also one of more than 53 bits as text. */
export function count(value) {
  return /^[0-9]+$/.test(String(value)) ? numbers.format(BigInt(value)) : String(value);
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${String(value) === "1" ? one : many}`;
}

/** Unix microseconds. */
export function moment(microseconds) {
  const date = new Date(Number(microseconds) / 1000);
  return Number(microseconds) > 0 && !Number.isNaN(date.getTime())
    ? date.toISOString().replace("T", " ").slice(0, 19) + " UTC"
    : "never";
}

export function duration(seconds) {
  if (!(seconds >= 0)) return "an unknown time";
  if (seconds < 60) return plural(Math.round(seconds), "second");
  if (seconds < 3600) return plural(Math.round(seconds / 60), "minute");
  if (seconds < 172_800) return plural(Math.round(seconds / 3600), "hour");
  return plural(Math.round(seconds / 86_400), "day");
}

/** Microseconds, as milliseconds or seconds. */
export function millis(microseconds) {
  const millis = microseconds / 1000;
  if (millis < 10) return `${millis.toFixed(2)} ms`;
  return millis < 10_000 ? `${Math.round(millis)} ms` : `${(millis / 1000).toFixed(1)} s`;
}

/** The key of a row or of an admission: its name, where it has one, and its id; null without a key. */
export function keyText({ key, key_name: name }) {
  return key && name ? `${name} (${key})` : key || name || null;
}

export function shortHash(hash) {
  return `${String(hash).slice(0, 8)}…`;
}

/** The last part of an origin: a log's ULID, its time and its end. */
export function logName(origin) {
  return String(origin).split("/").at(-1);
}

export function shortLog(name) {
  return name.length > 14 ? `${name.slice(0, 6)}…${name.slice(-4)}` : name;
}

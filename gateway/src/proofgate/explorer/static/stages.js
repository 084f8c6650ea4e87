// The stages of one exchange, out of its records: what came when, how long it took, and what rules said.

const ENDS = ["completion", "aborted", "rejection"];

/** What rules said, by the note in a record; `denied` says that they had their way. */
function verdictOf(policy, denied = false) {
  if (!policy) return "no rule matched";
  if (denied) return "denied";
  if (policy.would_block) return "would be denied";
  return policy.redacted ? "redacted" : "flagged";
}

const rulesOf = (policy) => [
  ...(Array.isArray(policy?.rules) ? policy.rules.map(String) : []),
  ...(policy?.unnamed ? [`and ${policy.unnamed} more`] : []),
];

/**
 * Stages in order: `{name, text, from, to, rules, verdict, failed}`, times in microseconds from the first record. `to` is
 * null where no record tells an end, and equal to `from` for a moment. Records are parsed; others' kinds are passed over.
 */
export function stagesOf(records) {
  const first = records.find(({ kind }) => kind === "admission" || kind === "rejection");
  if (!first) return [];
  const at = ({ ts }) => Math.max(0, Number(ts) - Number(first.ts));
  const end = records.find(({ kind }) => ENDS.includes(kind));
  if (first.kind === "rejection") return [refused(first)];
  const further = records.filter(({ kind }) => kind === "attempt").sort((a, b) => a.attempt - b.attempt);
  // Who found an exchange that a crash cut says when it was found, and not when it ended.
  const until = end?.kind === "completion" ? at(end) : null;
  const sent = [first, ...further].map((record, number, all) => attempt(record, number, all[number + 1], { at, until, end }));
  return [admitted(first), ...sent, ended(end, at)];
}

function refused({ code, status, policy }) {
  const verdict = policy ? verdictOf(policy, true) : null;
  return { name: "Refused", text: `${code}, answered with ${status}; nothing was sent`, from: 0, to: 0, rules: rulesOf(policy), verdict, failed: true };
}

function admitted({ bytes, policy, coming }) {
  const text = coming ? `with ${bytes} bytes of a request that had not arrived completely` : `a request of ${bytes} bytes`;
  return { name: "Admitted", text, from: 0, to: 0, rules: rulesOf(policy), verdict: verdictOf(policy), failed: false };
}

function attempt(record, number, next, { at, until, end }) {
  const to = next ? at(next) : until;
  const provider = `${record.provider}${record.upstream_model ? `, ${record.upstream_model}` : ""}`;
  const told = next ? `ended with ${next.failure}${next.failed_status ? ` (${next.failed_status})` : ""}` : answer(end);
  const failed = Boolean(next) || !end || end.kind !== "completion" || end.outcome !== "complete";
  return { name: `Attempt ${number + 1}`, text: `${provider}: ${told}`, from: at(record), to, rules: [], verdict: null, failed };
}

function answer(end) {
  if (!end) return "no end is recorded yet";
  if (end.kind === "aborted") return "interrupted when its worker ended";
  return end.upstream_status ? `answered with ${end.upstream_status}` : "no answer";
}

function ended(end, at) {
  if (!end) return { name: "No end yet", text: "the exchange is in progress, or its worker was killed and no other worker has taken over", from: null, to: null, rules: [], verdict: null, failed: false };
  if (end.kind === "aborted") {
    return { name: "Aborted", text: "recorded by the next worker, when it found the exchange", from: at(end), to: at(end), rules: [], verdict: null, failed: true };
  }
  const { outcome, status, bytes, policy } = end;
  const text = `${outcome}, answered with ${status}, ${bytes} bytes`;
  return { name: "Completed", text, from: at(end), to: at(end), rules: rulesOf(policy), verdict: verdictOf(policy, outcome === "policy_blocked"), failed: outcome !== "complete" };
}

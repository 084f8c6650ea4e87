// One question to the ledger's verifier: the C interface of rust-core/crates/browser.

/**
 * Asks a fresh instance, which is dropped with all its memory afterwards.
 * @param {WebAssembly.Module} module
 * @param {string} question name of an exported question
 * @param {(string | Uint8Array | null)[]} given its arguments in order; null leaves one out
 * @returns {Promise<object>} the answer; `ok` is true only when the verifier says so
 */
export async function ask(module, question, given) {
  try {
    const { exports } = await WebAssembly.instantiate(module, {});
    for (const argument of given) {
      if (argument === null) {
        exports.no_argument();
        continue;
      }
      const bytes = typeof argument === "string" ? new TextEncoder().encode(argument) : argument;
      const address = exports.argument(bytes.length) >>> 0;
      // The memory may have grown: a view of it is of no use later.
      new Uint8Array(exports.memory.buffer, address, bytes.length).set(bytes);
    }
    const length = exports[question]() >>> 0;
    const answer = new Uint8Array(exports.memory.buffer, exports.answer() >>> 0, length);
    return JSON.parse(new TextDecoder().decode(answer));
  } catch (error) {
    return refusal("verifier_failed", `the verifier ended without an answer: ${error.message}`);
  }
}

export function refusal(code, message) {
  return { ok: false, error: { code, message } };
}

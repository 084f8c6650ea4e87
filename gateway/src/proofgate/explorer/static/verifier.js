// The verifier, as the views ask it.
import { refusal } from "./wasm.js";

const SECONDS = 30;
let compiled;

function module() {
  compiled ??= WebAssembly.compileStreaming(fetch(new URL("verifier.wasm", import.meta.url))).catch((error) => {
    compiled = undefined;
    throw error;
  });
  return compiled;
}

/** Asks one question in a thread of its own. Never rejects: what fails or takes too long is a refusal. */
export async function ask(question, ...given) {
  let worker;
  let timer;
  try {
    const compiledModule = await module();
    return await new Promise((resolve) => {
      worker = new Worker(new URL("verifier-worker.js", import.meta.url), { type: "module" });
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = () => resolve(refusal("verifier_failed", "the verifier's thread could not run"));
      timer = setTimeout(() => resolve(refusal("timeout", `no answer within ${SECONDS} seconds`)), SECONDS * 1000);
      worker.postMessage({ module: compiledModule, question, given });
    });
  } catch (error) {
    return refusal("no_verifier", `the verifier could not be loaded: ${error.message}`);
  } finally {
    clearTimeout(timer);
    worker?.terminate();
  }
}

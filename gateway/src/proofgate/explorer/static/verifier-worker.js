// A thread for one question, so that a long one can be ended.
import { ask } from "./wasm.js";

self.onmessage = async ({ data }) => self.postMessage(await ask(data.module, data.question, data.given));

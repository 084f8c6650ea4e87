// Asks the browser's verifier without a browser: a line of JSON for each question on standard input, one for each answer.
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

const folder = process.argv[2];
// As the browser takes it: a module, whatever its file is called.
const source = await readFile(`${folder}/wasm.js`, "base64");
const { ask } = await import(`data:text/javascript;base64,${source}`);
const module = await WebAssembly.compile(await readFile(`${folder}/verifier.wasm`));
console.error("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const { question, given } = JSON.parse(line);
  const bytes = given.map((argument) => (argument === null ? null : new Uint8Array(Buffer.from(argument, "base64"))));
  console.log(JSON.stringify(await ask(module, question, bytes)));
}

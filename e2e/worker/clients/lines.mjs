// A client behind two pipes: one request as JSON on each line of standard input, its result on a line of standard output.
import { createInterface } from "node:readline";

/** Serves requests with `ask`, which returns what came of one or throws what its client throws. */
export async function serve(ask, failed) {
  const settings = JSON.parse(process.argv[2]);
  console.error("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    let result;
    try {
      result = { told: await ask(settings, JSON.parse(line)) };
    } catch (error) {
      result = { failed: { kind: error.constructor.name, message: String(error.message), ...failed(error) } };
    }
    process.stdout.write(JSON.stringify(result) + "\n");
  }
}

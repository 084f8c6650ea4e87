// Vercel's AI SDK, spoken to as the drivers in Python are (lines.py).
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { PROOFGATE_BASE_URL: base, PROOFGATE_KEY: apiKey, PROOFGATE_MODEL: name, PROOFGATE_API: api } = process.env;
const MAX_TURNS = 40;

const openai = createOpenAI({ baseURL: `${base}/v1`, apiKey });
const models = {
  responses: () => openai(name),
  "responses-not-stored": () => openai(name),
  chat: () => openai.chat(name),
  messages: () => createAnthropic({ baseURL: `${base}/v1`, apiKey })(name),
  google: () => createGoogleGenerativeAI({ baseURL: `${base}/v1beta`, apiKey })(name),
};
const model = models[api]();
const always = api === "responses-not-stored" ? { openai: { store: false } } : {};
const thinking = {
  openai: { ...always.openai, reasoningEffort: "medium" },
  anthropic: { thinking: { type: "enabled", budgetTokens: 2048 } },
  google: { thinkingConfig: { includeThoughts: true } },
};
const kinds = { png: "image/png", pdf: "application/pdf" };

const read_file = tool({
  description: "Reads a file of the project.",
  inputSchema: z.object({ path: z.string() }),
  execute: async ({ path }) => {
    const mediaType = kinds[path.split(".").pop()];
    return mediaType ? { mediaType, data: readFileSync(path, "base64") } : readFileSync(path, "utf8");
  },
  toModelOutput: ({ output }) => {
    if (typeof output === "string") return { type: "text", value: output };
    const { mediaType, data } = output;
    return { type: "content", value: [{ type: "file", mediaType, data: { type: "data", data }, filename: "paper.pdf" }] };
  },
});

const loop = async (prompt, providerOptions) => {
  const tools = { read_file };
  const { text } = await generateText({ model, prompt, tools, providerOptions, stopWhen: stepCountIs(MAX_TURNS) });
  return text;
};

const does = {
  turn: async (prompt) => {
    let text = "";
    let failed;
    const { textStream } = streamText({ model, prompt, providerOptions: always, onError: ({ error }) => (failed = error) });
    for await (const piece of textStream) text += piece;
    if (failed) throw failed;
    return text;
  },
  work: (prompt) => loop(prompt, always),
  think: (prompt) => loop(prompt, thinking),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { does: what, prompt } = JSON.parse(line);
  let outcome;
  try {
    outcome = what in does ? { text: await does[what](prompt) } : { not_offered: what };
  } catch (error) {
    const last = error.lastError ?? error;
    const message = `${last.message} ${last.responseBody ?? ""}`.slice(0, 2000);
    outcome = { failed: { kind: last.name, status: last.statusCode ?? null, message } };
  }
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}

// The official Node client of Google.
import { GoogleGenAI } from "@google/genai";
import { serve } from "./lines.mjs";

function request(settings, ask) {
  const parts = [{ text: ask.prompt }];
  if (ask.picture) parts.push({ inlineData: { mimeType: "image/png", data: ask.picture } });
  const contents = [{ role: "user", parts }];
  if (ask.results) {
    const cities = ["oslo", "rome"];
    const calls = cities.map((city) => ({ functionCall: { name: "look", args: { city } } }));
    const results = cities.map(() => ({ functionResponse: { name: "look", response: { result: "12 degrees" } } }));
    contents.push({ role: "model", parts: calls }, { role: "user", parts: results });
  }
  const look = { name: "look", description: "Looks.", parametersJsonSchema: settings.look };
  const config = {
    ...((ask.tools || ask.results) && { tools: [{ functionDeclarations: [look] }] }),
    ...(ask.schema && { responseMimeType: "application/json", responseJsonSchema: settings.schema }),
  };
  return { model: ask.model, contents, config };
}

function told(answers) {
  const candidates = answers.flatMap(({ candidates }) => candidates ?? []);
  const parts = candidates.flatMap(({ content }) => content?.parts ?? []);
  const usage = answers.at(-1).usageMetadata;
  return {
    text: parts.map(({ text }) => text ?? "").join(""),
    calls: parts.filter((part) => part.functionCall).map(({ functionCall: { name, args } }) => [name, args]),
    finish: candidates.map(({ finishReason }) => finishReason).filter(Boolean).at(-1) ?? null,
    usage: [usage.promptTokenCount, usage.candidatesTokenCount],
  };
}

await serve(
  async (settings, ask) => {
    const client = new GoogleGenAI({ apiKey: ask.key ?? settings.key, httpOptions: { baseUrl: settings.base_url } });
    if (!ask.stream) return told([await client.models.generateContent(request(settings, ask))]);
    const abort = new AbortController();
    const wanted = request(settings, ask);
    wanted.config.abortSignal = abort.signal;
    const answers = [];
    for await (const answer of await client.models.generateContentStream(wanted)) {
      if (ask.leave) {
        abort.abort();
        return {};
      }
      answers.push(answer);
    }
    return told(answers);
  },
  (error) => {
    // The client has the whole answer as its message.
    let said = {};
    try {
      said = JSON.parse(error.message.slice(error.message.indexOf("{"))).error ?? {};
    } catch {}
    const detail = (name) => (said.details ?? []).find((found) => found["@type"].endsWith(name));
    return {
      status: error.status ?? null,
      code: detail("ErrorInfo")?.reason ?? said.status ?? null,
      retry: detail("RetryInfo")?.retryDelay ?? null,
    };
  },
);

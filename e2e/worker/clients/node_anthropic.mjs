// The official Node client of Anthropic.
import Anthropic from "@anthropic-ai/sdk";
import { serve } from "./lines.mjs";

function request(settings, ask) {
  const source = { type: "base64", media_type: "image/png", data: ask.picture };
  const content = ask.picture ? [{ type: "text", text: ask.prompt }, { type: "image", source }] : ask.prompt;
  const messages = [{ role: "user", content }];
  if (ask.results) {
    const cities = ["oslo", "rome"];
    const call = (city) => ({ type: "tool_use", id: `toolu_${city}`, name: "look", input: { city } });
    const result = (city) => ({ type: "tool_result", tool_use_id: `toolu_${city}`, content: "12 degrees" });
    messages.push({ role: "assistant", content: cities.map(call) }, { role: "user", content: cities.map(result) });
  }
  const look = { name: "look", description: "Looks.", input_schema: settings.look };
  return {
    model: ask.model,
    max_tokens: 100,
    messages,
    ...((ask.tools || ask.results) && { tools: [look] }),
    ...(ask.schema && { output_config: { format: { type: "json_schema", schema: settings.schema } } }),
  };
}

function told(message) {
  const blocks = (type) => message.content.filter((block) => block.type === type);
  return {
    text: blocks("text").map(({ text }) => text).join(""),
    calls: blocks("tool_use").map(({ name, input }) => [name, input]),
    finish: message.stop_reason,
    usage: [message.usage.input_tokens, message.usage.output_tokens],
  };
}

await serve(
  async (settings, ask) => {
    const baseURL = settings.base_url;
    const client = new Anthropic({ baseURL, apiKey: ask.key ?? settings.key, maxRetries: 0 });
    if (!ask.stream) return told(await client.messages.create(request(settings, ask)));
    const stream = client.messages.stream(request(settings, ask));
    if (!ask.leave) return told(await stream.finalMessage());
    for await (const _ of stream) return {};
  },
  (error) => ({
    status: error.status ?? null,
    code: error.error?.error?.code ?? error.error?.error?.type ?? null,
    retry: error.headers?.get("retry-after") ?? null,
  }),
);

// The official Node client of OpenAI: chat completions, and with the setting `responses` responses.
import OpenAI from "openai";
import { serve } from "./lines.mjs";

const cities = ["oslo", "rome"];

function chat(settings, ask) {
  const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${ask.picture}` } };
  const content = ask.picture ? [{ type: "text", text: ask.prompt }, picture] : ask.prompt;
  const messages = [{ role: "user", content }];
  if (ask.results) {
    const call = (city) => ({ name: "look", arguments: JSON.stringify({ city }) });
    const calls = cities.map((city) => ({ id: `call_${city}`, type: "function", function: call(city) }));
    messages.push({ role: "assistant", content: null, tool_calls: calls });
    calls.forEach(({ id }) => messages.push({ role: "tool", tool_call_id: id, content: "12 degrees" }));
  }
  const look = { name: "look", description: "Looks.", parameters: settings.look };
  const wanted = { name: "trip", schema: settings.schema, strict: true };
  return {
    model: ask.model,
    messages,
    ...((ask.tools || ask.results) && { tools: [{ type: "function", function: look }] }),
    ...(ask.schema && { response_format: { type: "json_schema", json_schema: wanted } }),
  };
}

async function askChat(client, settings, ask) {
  const request = chat(settings, ask);
  if (!ask.stream) {
    const completion = await client.chat.completions.create(request);
    const { message, finish_reason } = completion.choices[0];
    const calls = (message.tool_calls ?? []).map(({ function: { name, arguments: given } }) => [name, JSON.parse(given)]);
    return told(message.content ?? "", calls, finish_reason, completion.usage);
  }
  const options = { stream: true, stream_options: { include_usage: true } };
  const stream = await client.chat.completions.create({ ...request, ...options });
  let [text, finish, usage] = ["", null, null];
  const calls = [];
  for await (const chunk of stream) {
    // Leaving the loop aborts the request.
    if (ask.leave) return {};
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason } of chunk.choices) {
      text += delta.content ?? "";
      finish = finish_reason ?? finish;
      for (const call of delta.tool_calls ?? []) {
        const begun = (calls[call.index] ??= ["", ""]);
        begun[0] += call.function.name ?? "";
        begun[1] += call.function.arguments ?? "";
      }
    }
  }
  return told(text, calls.map(([name, given]) => [name, JSON.parse(given)]), finish, usage);
}

const told = (text, calls, finish, usage) => ({
  text,
  calls,
  finish,
  usage: usage && [usage.prompt_tokens ?? usage.input_tokens, usage.completion_tokens ?? usage.output_tokens],
});

function response(settings, ask) {
  const picture = { type: "input_image", image_url: `data:image/png;base64,${ask.picture}`, detail: "auto" };
  const input = [{ role: "user", content: [{ type: "input_text", text: ask.prompt }, ...(ask.picture ? [picture] : [])] }];
  if (ask.results) {
    const call = (city) => ({ call_id: `call_${city}`, name: "look", arguments: JSON.stringify({ city }) });
    cities.forEach((city) => input.push({ type: "function_call", ...call(city) }));
    cities.forEach((city) => input.push({ type: "function_call_output", call_id: `call_${city}`, output: "12 degrees" }));
  }
  const look = { type: "function", name: "look", description: "Looks.", parameters: settings.look, strict: false };
  const wanted = { type: "json_schema", name: "trip", schema: settings.schema, strict: true };
  return {
    model: ask.model,
    input,
    store: false,
    ...((ask.tools || ask.results) && { tools: [look] }),
    ...(ask.schema && { text: { format: wanted } }),
  };
}

async function askResponses(client, settings, ask) {
  const request = response(settings, ask);
  const whole = (answer, text) => {
    const calls = answer.output.filter(({ type }) => type === "function_call");
    return told(text, calls.map((call) => [call.name, JSON.parse(call.arguments)]), answer.status, answer.usage);
  };
  if (!ask.stream) {
    const answer = await client.responses.create(request);
    return whole(answer, answer.output_text);
  }
  let [text, last] = ["", null];
  for await (const event of await client.responses.create({ ...request, stream: true })) {
    if (ask.leave) return {};
    if (event.type === "response.output_text.delta") text += event.delta;
    if (["response.completed", "response.incomplete"].includes(event.type)) last = event.response;
  }
  return whole(last, text);
}

await serve(
  (settings, ask) => {
    const baseURL = `${settings.base_url}/v1`;
    const client = new OpenAI({ baseURL, apiKey: ask.key ?? settings.key, maxRetries: 0 });
    return settings.responses ? askResponses(client, settings, ask) : askChat(client, settings, ask);
  },
  (error) => ({
    status: error.status ?? null,
    code: error.code ?? error.type ?? null,
    retry: error.headers?.get("retry-after") ?? null,
  }),
);

// What server-everything can do with a client of the TypeScript SDK's second line,
// @modelcontextprotocol/client: `--url URL --mode legacy|2026-07-28`. Prints one object.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { main, text } from "./lib.mjs";

await main(async ({ url, mode }) => {
  const client = new Client(
    { name: "signalbox-e2e-v2", version: "1" },
    {
      capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} },
      versionNegotiation: { mode: mode === "legacy" ? "legacy" : { pin: mode } },
    },
  );
  const asked = new Set();
  client.setRequestHandler("sampling/createMessage", ({ method, params }) => {
    asked.add(method);
    const text = `sampled: ${[params.messages[0].content].flat()[0].text}`;
    return { role: "assistant", model: "none", content: { type: "text", text } };
  });
  client.setRequestHandler("elicitation/create", ({ method }) => {
    asked.add(method);
    return { action: "accept", content: { name: "Ada Lovelace", check: true } };
  });
  client.setRequestHandler("roots/list", ({ method }) => {
    asked.add(method);
    return { roots: [{ uri: "file:///srv/e2e-root", name: "e2e root" }] };
  });
  const wire = new StreamableHTTPClientTransport(new URL(`${url}/mcp`));
  await client.connect(wire);
  const call = (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, options);

  const seen = { server: client.getServerVersion().name, revision: client.getNegotiatedProtocolVersion() };
  seen.tools = await toolsWith(client, "trigger-sampling-request", "trigger-elicitation-request");
  seen.echo = text(await call("echo", { message: "héllo\u2028🚦" }));
  seen.sum = text(await call("get-sum", { a: 2, b: 40 }));
  seen.structured = (await call("get-structured-content", { location: "Chicago" })).structuredContent;
  seen.prompt = (await client.getPrompt({ name: "simple-prompt" })).messages[0].content.text;
  seen.resource = (await client.readResource({ uri: "demo://resource/dynamic/text/7" })).contents[0].uri;
  seen.progress = [];
  const onprogress = ({ progress, total }) => seen.progress.push([progress, total]);
  seen.long = text(await call("trigger-long-running-operation", { duration: 0.3, steps: 3 }, { onprogress }));
  seen.sampling = text(await call("trigger-sampling-request", { prompt: "why?", maxTokens: 5 }));
  seen.elicitation = text(await call("trigger-elicitation-request"));
  seen.asked = [...asked].sort();
  if (mode === "legacy") await wire.terminateSession();
  await client.close();
  return seen;
});

/** The names of the tools, once these are among them: the server adds some a moment after it began. */
async function toolsWith(client, ...names) {
  for (let tries = 0; ; tries++) {
    const tools = (await client.listTools({}, { cacheMode: "bypass" })).tools.map((tool) => tool.name).sort();
    if (names.every((name) => tools.includes(name))) return tools;
    if (tries === 100) throw new Error(`never listed: ${names}; there are ${tools}`);
    await new Promise((later) => setTimeout(later, 100));
  }
}

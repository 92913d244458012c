// What the client scripts share. Each script takes `--transport streamable|sse --url URL`,
// talks to one server through Signalbox with the TypeScript SDK, and prints one JSON
// object with what it saw; the Go tests judge it. Anything unexpected ends it with status 1.
import { parseArgs } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const transports = {
  streamable: (url) => new StreamableHTTPClientTransport(new URL(`${url}/mcp`)),
  sse: (url) => new SSEClientTransport(new URL(`${url}/sse`)),
};

/** Messages of one kind as they arrive; tests wait for one that they like. */
class Inbox {
  all = [];
  #waiting = [];

  put(item) {
    this.all.push(item);
    this.#waiting = this.#waiting.filter(({ like, resolve }) => !like(item) || resolve(item));
  }

  /** The first item that `like` accepts, seen already or still to come. */
  first(like = () => true) {
    const item = this.all.find(like);
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve) => this.#waiting.push({ like, resolve }));
  }
}

/** A client that can do everything: sampling, elicitation and roots are answered. */
export async function connect({ transport, url }, roots = []) {
  const client = new Client(
    { name: "signalbox-e2e", version: "1" },
    { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } },
  );
  const inbox = { logs: new Inbox(), updates: new Inbox(), toolLists: new Inbox(), asked: new Inbox() };
  client.setRequestHandler(types.CreateMessageRequestSchema, ({ method, params }) => {
    inbox.asked.put(method);
    const text = `sampled: ${params.messages[0].content.text}`;
    return { role: "assistant", model: "none", content: { type: "text", text } };
  });
  client.setRequestHandler(types.ElicitRequestSchema, ({ method }) => {
    inbox.asked.put(method);
    return { action: "accept", content: { name: "Ada Lovelace", check: true } };
  });
  client.setRequestHandler(types.ListRootsRequestSchema, ({ method }) => {
    inbox.asked.put(method);
    return { roots };
  });
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, ({ params }) => inbox.logs.put(params));
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => inbox.updates.put(params));
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => inbox.toolLists.put({}));

  const wire = transports[transport](url);
  await client.connect(wire);
  const call = (name, args = {}, options = {}) =>
    client.callTool({ name, arguments: args }, types.CallToolResultSchema, options);
  const close = async () => {
    if (transport === "streamable") await wire.terminateSession();
    await client.close();
  };
  return { client, inbox, call, close };
}

/** The text of a tool's result. */
export const text = (result) => result.content.map((part) => part.text).join("\n");

/** Runs a script's main function with its options, prints what it returns. */
export async function main(run) {
  const { values } = parseArgs({
    options: {
      transport: { type: "string" },
      url: { type: "string" },
      directory: { type: "string" },
      targets: { type: "string" },
      mode: { type: "string" },
    },
  });
  console.log(JSON.stringify(await run(values)));
}

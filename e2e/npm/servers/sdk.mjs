// An MCP server over Streamable HTTP, made of the TypeScript SDK: `--port N`, and
// `--stateless` to have no sessions, `--json` to answer in JSON. Its tools are those of
// sdkserver, the same server in Go, with the same answers.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const { values: options } = parseArgs({
  options: { port: { type: "string" }, stateless: { type: "boolean" }, json: { type: "boolean" } },
});

const received = {}; // method: count
let running = 0;
const gates = new Map(); // key: { released, release }
const sessions = new Map(); // id: { transport, server, subscribed }

const questions = {
  "roots/list": [{}, types.ListRootsResultSchema],
  "elicitation/create": [
    { message: "Who?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } },
    types.ElicitResultSchema,
  ],
  "sampling/createMessage": [
    { messages: [{ role: "user", content: { type: "text", text: "Hello" } }], maxTokens: 10 },
    types.CreateMessageResultSchema,
  ],
};

/** Tools: (arguments, extra of the SDK, report of progress) => structured content. */
const tools = {
  echo: async (args) => args,
  async progress(args, { signal }, report) {
    for (let i = 1; i <= args.n; i++) {
      await sleep(args.ms ?? 0, undefined, { signal });
      await report(i, args.n);
    }
    return args;
  },
  async hold(args, _, report) {
    await report(1, 1);
    await gate(args.key).released;
    return args;
  },
  async release({ key }) {
    gate(key).release();
    return {};
  },
  async ask({ method }, { sendRequest }) {
    const [params, schema] = questions[method];
    return { result: await sendRequest({ method, params }, schema) };
  },
  async log({ level, data }, { sendNotification }) {
    await sendNotification({ method: "notifications/message", params: { level, logger: "sdk.mjs", data } });
    return {};
  },
  async updated({ uri }) {
    for (const { server, subscribed } of sessions.values()) {
      if (subscribed.has(uri)) await server.sendResourceUpdated({ uri });
    }
    return {};
  },
  stats: async () => ({ received, running }),
};

function gate(key) {
  if (!gates.has(key)) {
    let release;
    const released = new Promise((resolve) => (release = resolve));
    gates.set(key, { released, release });
  }
  return gates.get(key);
}

function newServer(subscribed) {
  const server = new Server(
    { name: "sdk.mjs", version: "1" },
    { capabilities: { tools: {}, resources: { subscribe: true }, logging: {} } },
  );
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({
    tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } })),
  }));
  server.setRequestHandler(types.CallToolRequestSchema, async ({ params }, extra) => {
    const progressToken = params._meta?.progressToken;
    const report = async (progress, total) => {
      if (progressToken === undefined) return;
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total } });
    };
    running++;
    try {
      const structuredContent = await tools[params.name](params.arguments ?? {}, extra, report);
      return { content: [{ type: "text", text: "see structuredContent" }], structuredContent };
    } finally {
      running--;
    }
  });
  server.setRequestHandler(types.ListResourcesRequestSchema, () => ({
    resources: ["test://a", "test://b"].map((uri) => ({ uri, name: uri })),
  }));
  server.setRequestHandler(types.ReadResourceRequestSchema, ({ params: { uri } }) => ({ contents: [{ uri, text: "text" }] }));
  server.setRequestHandler(types.SubscribeRequestSchema, ({ params: { uri } }) => (subscribed.add(uri), {}));
  server.setRequestHandler(types.UnsubscribeRequestSchema, ({ params: { uri } }) => (subscribed.delete(uri), {}));
  return server;
}

async function newTransport() {
  const subscribed = new Set();
  const server = newServer(subscribed);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: options.stateless ? undefined : randomUUID,
    enableJsonResponse: options.json,
    onsessioninitialized: (id) => sessions.set(id, { transport, server, subscribed }),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await server.connect(transport);
  return transport;
}

function refuse(res, status, message) {
  res.writeHead(status, { "Content-Type": "application/json" });
  res.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }));
}

async function handle(req, res) {
  received[req.method] = (received[req.method] ?? 0) + 1;
  const id = req.headers["mcp-session-id"];
  if (options.stateless) {
    if (id !== undefined) return refuse(res, 400, "this server has no sessions");
    if (req.method !== "POST") return refuse(res, 405, "Method not allowed");
  } else if (id !== undefined) {
    const session = sessions.get(id);
    return session ? session.transport.handleRequest(req, res) : refuse(res, 404, "Session not found");
  }
  const transport = await newTransport();
  res.on("close", () => options.stateless && transport.close());
  return transport.handleRequest(req, res);
}

createServer((req, res) => handle(req, res).catch((error) => res.destroy(error))).listen(Number(options.port), "127.0.0.1");

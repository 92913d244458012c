// A client with the TypeScript SDK's OAuth, the whole way and without a browser: 401,
// the metadata of the resource and of the authorization server, registration,
// authorization with PKCE, token, and calls; then the keys of the server change while
// the session is open.
import { parseArgs } from "node:util";
import { auth, extractWWWAuthenticateParams, UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { values: options } = parseArgs({
  options: { transport: { type: "string" }, url: { type: "string" }, issuer: { type: "string" } },
});
const resource = new URL(options.transport === "sse" ? "/sse" : "/mcp", options.url);
const makeTransport = (authProvider) =>
  options.transport === "sse"
    ? new SSEClientTransport(resource, { authProvider })
    : new StreamableHTTPClientTransport(resource, { authProvider });

const secrets = []; // that must stand in no log

/** What the SDK wants to have kept, and a browser of a few lines. */
class Person {
  redirectUrl = "http://127.0.0.1:9/callback"; // nobody listens there: the browser stops before
  visited = [];
  #cookies = new Map();

  constructor(name) {
    this.name = name;
  }
  get clientMetadata() {
    return {
      client_name: `e2e ${this.name}`,
      redirect_uris: [this.redirectUrl],
      application_type: "native",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.token;
  saveTokens = (token) => {
    this.token = token;
    secrets.push(token.access_token, token.refresh_token);
  };
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  redirectToAuthorization = (url) => void (this.authorization = url);

  /** Follows the redirects of the authorization server to the code. */
  async browse() {
    let url = this.authorization;
    url.searchParams.set("login_hint", this.name);
    for (let hops = 0; hops < 10; hops++) {
      if (url.href.startsWith(this.redirectUrl)) return url.searchParams.get("code");
      this.visited.push(url.pathname.replace(/\/[^/]{15,}$/, "/UID"));
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(url, { redirect: "manual", headers: cookie ? { cookie } : {} });
      for (const line of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
        if (value) this.#cookies.set(name, value);
        else this.#cookies.delete(name);
      }
      const location = response.headers.get("location");
      if (!location) throw new Error(`${url}: ${response.status} ${await response.text()}`);
      url = new URL(location, url);
    }
    throw new Error(`too many redirects: ${this.visited}`);
  }

  async connect() {
    let transport = makeTransport(this);
    try {
      await new Client({ name: "oauth", version: "1" }).connect(transport);
      throw new Error("connected without a token");
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
    }
    await transport.finishAuth(await this.browse());
    transport = makeTransport(this);
    this.mcp = new Client({ name: "oauth", version: "1" });
    await this.mcp.connect(transport);
    return transport;
  }

  /** Calls a tool of the fake server. */
  async call(name, args = {}) {
    return (await this.mcp.callTool({ name, arguments: args })).structuredContent;
  }
}

const decode = (token, part) => JSON.parse(Buffer.from(token.split(".")[part], "base64url"));
const kid = (person) => decode(person.token.access_token, 0).kid;
const rotate = async (query) => (await fetch(new URL(`/rotate?${query}`, options.issuer), { method: "POST" })).json();
const seen = {};

/** The time in ms until a call works again, after a rotation; the limit is the test's. */
async function until(call) {
  const began = Date.now();
  for (;;) {
    try {
      seen.kept.push(await call());
      return Date.now() - began;
    } catch (error) {
      if (Date.now() - began > 60_000) throw error;
      await new Promise((later) => setTimeout(later, 200));
    }
  }
}

const refused = await fetch(resource, { method: options.transport === "sse" ? "GET" : "POST" });
seen.refused = { status: refused.status, metadata: extractWWWAuthenticateParams(refused).resourceMetadataUrl?.href };

const alice = new Person("alice");
const transport = await alice.connect();
seen.visited = alice.visited;
seen.claims = decode(alice.token.access_token, 1);
seen.kids = [kid(alice)];
seen.scope = alice.token.scope;
seen.session = transport.sessionId;
seen.kept = [];
await alice.call("set", { key: "k", value: "kept" });

// A new key beside the old one; the SDK refreshes, and the session goes on.
await rotate("alg=RS256");
const old = alice.token.access_token;
await auth(alice, { serverUrl: resource });
const get = async () => (await alice.call("get", { key: "k" })).value;
seen.accepted = [await until(get)];
seen.kids.push(kid(alice));

// The old key is withdrawn and the token is broken: the SDK gets 401 and refreshes by itself.
await rotate("alg=ES256&drop=1");
alice.token = { ...alice.token, access_token: "broken" };
seen.accepted.push(await until(get));
seen.kids.push(kid(alice));
seen.sessionAfter = transport.sessionId;
const withdrawn = await fetch(resource, {
  method: options.transport === "sse" ? "GET" : "POST",
  headers: { authorization: `Bearer ${old}` },
});
seen.withdrawn = withdrawn.status;

// Somebody else of the same issuer has a session of their own, and cannot use this one.
const bob = new Person("bob");
await bob.connect();
seen.bob = (await bob.call("get", { key: "k" })).value;
if (options.transport !== "sse") {
  const stolen = await fetch(resource, {
    method: "DELETE",
    headers: { authorization: `Bearer ${bob.token.access_token}`, "mcp-session-id": transport.sessionId },
  });
  seen.stolen = stolen.status;
}
seen.kept.push(await get());

for (const person of [alice, bob]) {
  await person.mcp.transport.terminateSession?.();
  await person.mcp.close();
}
seen.secrets = [...secrets, transport.sessionId].filter(Boolean);
console.log(JSON.stringify(seen));
process.exit(0);

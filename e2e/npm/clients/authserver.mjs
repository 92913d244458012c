// A real authorization server for the tests: oidc-provider on loopback. It registers
// any client, logs everybody in as the user that the authorization request's login_hint
// names, and consents. Tokens for a resource are JWTs with the resource as aud.
//
// It prints its issuer as one line and runs until its standard input ends.
//
//   POST /rotate?alg=RS256[&drop=1]   signs with a new key from now on; drop unpublishes the others
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import Provider from "oidc-provider";

const scope = "mcp:use";
const cookieKeys = ["a key for cookies of this run only"];
let keys = []; // of access tokens

/** The storage, which outlives a provider. Nothing expires within a test. */
const rows = new Map();
class Storage {
  constructor(model) {
    this.key = (id) => `${model}:${id}`;
  }
  upsert = async (id, row) => void rows.set(this.key(id), row);
  find = async (id) => rows.get(this.key(id));
  findByUid = async (uid) => [...rows.values()].find((row) => row.uid === uid);
  findByUserCode = async () => undefined;
  consume = async (id) => void (rows.get(this.key(id)).consumed = Math.floor(Date.now() / 1000));
  destroy = async (id) => void rows.delete(this.key(id));
  revokeByGrantId = async (grantId) => {
    for (const [key, row] of rows) if (row.grantId === grantId) rows.delete(key);
  };
}

async function newKey(alg) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), alg, use: "sig", kid: randomUUID() };
}

/** oidc-provider reads its keys once, so a rotation makes a new one over the same rows. */
function makeProvider(issuer) {
  const alg = keys[0].alg;
  const provider = new Provider(issuer, {
    adapter: Storage,
    jwks: { keys: [...keys, idTokenKey] },
    cookies: { keys: cookieKeys },
    scopes: ["openid", "offline_access", scope], // ours too, for registration to know it
    pkce: { required: () => true },
    clientDefaults: { id_token_signed_response_alg: "PS256" },
    enabledJWA: { idTokenSigningAlgValues: ["PS256"] },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource) => ({
          scope,
          audience: resource,
          accessTokenFormat: "jwt",
          accessTokenTTL: 600,
          jwt: { sign: { alg } },
        }),
      },
    },
    issueRefreshToken: () => true,
    interactions: { url: (ctx, interaction) => `/login/${interaction.uid}` },
    findAccount: (ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    async loadExistingGrant(ctx) {
      const { client, session, params } = ctx.oidc;
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope(`openid offline_access ${scope}`);
      for (const resource of [params.resource].flat().filter(Boolean)) grant.addResourceScope(resource, scope);
      await grant.save();
      return grant;
    },
  });
  return { provider, answer: provider.callback() };
}

const server = createServer(async (req, res) => {
  const url = new URL(req.url, issuer);
  try {
    if (req.method === "POST" && url.pathname === "/rotate") {
      const key = await newKey(url.searchParams.get("alg"));
      keys = url.searchParams.has("drop") ? [key] : [key, ...keys];
      current = makeProvider(issuer);
      res.end(JSON.stringify({ kid: key.kid }));
    } else if (url.pathname.startsWith("/login/")) {
      const { params } = await current.provider.interactionDetails(req, res);
      const login = { accountId: params.login_hint ?? "alice" };
      await current.provider.interactionFinished(req, res, { login, consent: {} });
    } else {
      current.answer(req, res);
    }
  } catch (error) {
    console.error(error);
    res.writeHead(500).end();
  }
});

await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const idTokenKey = await newKey("PS256"); // never rotates, and signs no access token
keys = [await newKey("ES256")];
let current = makeProvider(issuer);
console.log(issuer);
process.stdin.resume().on("end", () => process.exit(0));

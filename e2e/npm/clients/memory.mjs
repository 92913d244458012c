// server-memory: what one call wrote the next one reads.
import { connect, main } from "./lib.mjs";

await main(async (options) => {
  const { client, call, close } = await connect(options);
  const seen = { server: client.getServerVersion().name };
  seen.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
  const entities = [{ name: "signal box", entityType: "building", observations: ["has levers"] }];
  await call("create_entities", { entities });
  seen.found = (await call("search_nodes", { query: "levers" })).structuredContent;
  await close();
  return seen;
});

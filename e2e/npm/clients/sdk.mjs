// What the servers made of an SDK can do, each at its own URL: `--targets JSON`, a list of
// { name, url, transport, sessions, streams }. Prints one object for each.
import { connect, main } from "./lib.mjs";

await main(async ({ targets }) => {
  const all = [];
  for (const target of JSON.parse(targets)) {
    try {
      all.push(await visit(target));
    } catch (error) {
      throw new Error(`${target.name} over ${target.transport}`, { cause: error });
    }
  }
  return all;
});

async function visit(target) {
  const { client, inbox, call, close } = await connect(target, [{ uri: "file:///srv/e2e-root", name: "e2e root" }]);
  const seen = { server: client.getServerVersion().name, progress: [], asked: [] };
  seen.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
  seen.echo = (await call("echo", { text: "héllo\u2028🚦" })).structuredContent.text;
  const onprogress = ({ progress }) => seen.progress.push(progress);
  // The SDK forgets a call's progress handler as soon as it reads the response.
  seen.n = (await call("progress", { n: 3, ms: 20 }, { onprogress })).structuredContent.n;
  if (target.sessions && target.streams) {
    for (const method of ["sampling/createMessage", "elicitation/create", "roots/list"]) {
      seen.asked.push(JSON.stringify((await call("ask", { method })).structuredContent.result));
    }
  }
  if (target.sessions) {
    await client.subscribeResource({ uri: "test://b" });
    await call("updated", { uri: "test://b" });
    seen.updated = (await inbox.updates.first()).uri;
    await client.unsubscribeResource({ uri: "test://b" });
  }
  await close();
  return seen;
}

// Everything that server-everything can do with a client.
import { connect, main, text } from "./lib.mjs";

const roots = [{ uri: "file:///srv/e2e-root", name: "e2e root" }];

await main(async (options) => {
  const { client, inbox, call, close } = await connect(options, roots);
  const seen = { server: client.getServerVersion().name };

  seen.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
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
  seen.roots = text(await call("get-roots-list"));
  seen.asked = [...new Set(inbox.asked.all)].sort();

  await client.setLoggingLevel("debug");
  await call("toggle-simulated-logging");
  seen.log = await inbox.logs.first(({ data }) => /level.message/i.test(data));
  await call("toggle-simulated-logging");

  const uri = "demo://resource/dynamic/text/1";
  await client.subscribeResource({ uri });
  await call("toggle-subscriber-updates");
  seen.updated = await inbox.updates.first();
  await call("toggle-subscriber-updates");
  await client.unsubscribeResource({ uri });

  seen.cancelled = await cancelled(call);
  await client.ping();
  await close();
  return seen;
});

/** Cancels a call after its first progress and says how it ended for the caller. */
async function cancelled(call) {
  const abort = new AbortController();
  const running = call(
    "trigger-long-running-operation",
    { duration: 600, steps: 60000 },
    { signal: abort.signal, onprogress: () => abort.abort("enough") },
  );
  return running.then(
    () => "a result",
    (error) => String(error),
  );
}

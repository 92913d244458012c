// server-filesystem: files below the directory of the client's root, and nothing else.
import { pathToFileURL } from "node:url";
import { connect, main, text } from "./lib.mjs";

await main(async (options) => {
  const { directory } = options;
  const { client, inbox, call, close } = await connect(options, [{ uri: pathToFileURL(directory).href, name: "root" }]);
  const seen = { server: client.getServerVersion().name };
  seen.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
  const path = `${directory}/note.txt`;
  await call("write_file", { path, content: "écrit\r\nby a client\u2028" });
  seen.read = text(await call("read_text_file", { path }));
  seen.refused = (await call("read_text_file", { path: "/etc/hostname" })).isError;
  seen.asked = await inbox.asked.first();
  await close();
  return seen;
});

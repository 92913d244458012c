// Uses the status page as an operator does, in the Chromium of this machine, and
// prints what it found as one line of JSON: {"requests": [...], "console": [...]}.
// A check that fails ends it with status 1 and says which.
//
//   node status.mjs --browser PATH --url http://127.0.0.1:PORT --session HASH --other HASH
//     --name TEXT --tool TEXT --failing NAME [--shots DIR]
//   node status.mjs --browser PATH --url URL --session HASH --password TOKEN
//
// The second form only logs in, and ends the session.
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import { join } from "node:path";
import { chromium } from "playwright-core";

const option = { type: "string" };
const { values: o } = parseArgs({ options: { browser: option, url: option, session: option, other: option, name: option, tool: option, failing: option, shots: option, password: option } });

const browser = await chromium.launch({
  executablePath: o.browser,
  // As root there is no sandbox; small containers have no room in /dev/shm. The
  // others keep the browser itself from calling anybody.
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
});
const found = { requests: [], console: [] };

const open = async (options) => {
  const context = await browser.newContext({ httpCredentials: o.password ? { username: "operator", password: o.password } : undefined, ...options });
  context.setDefaultTimeout(60000);
  const page = await context.newPage();
  page.on("request", (r) => found.requests.push(r.url()));
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  const answer = await page.goto(o.url + "/status");
  assert.equal(answer.status(), 200);
  await page.getByRole("status").filter({ hasText: "live" }).waitFor();
  await page.getByRole("button", { name: "Session " + o.session }).waitFor();
  return page;
};
const shot = async (page, name) => {
  if (o.shots) await page.screenshot({ path: join(o.shots, "status-" + name + ".png"), scale: "css" });
};
const row = (page, hash) => page.locator("#session-rows tr").filter({ hasText: hash });
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
// Whether anything wider than the window can be scrolled to.
const overflow = (page) => page.evaluate(() => {
  scrollTo(1000, 0);
  const moved = scrollX;
  scrollTo(0, 0);
  return Math.max(moved, document.documentElement.scrollWidth - innerWidth);
});
// The sum of all layout shifts, as the browser measures them (CLS).
const watchShifts = (page) => page.evaluate(() => {
  window.shifts = 0;
  new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) window.shifts += e.value; }).observe({ type: "layout-shift" });
});
const nextLook = (page) => page.waitForResponse((r) => r.url().endsWith("/api/v1/series"));

const endBy = async (page, hash) => {
  await row(page, hash).click();
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "End it" }).click();
  await page.locator("#detail").getByText("The session has ended.").waitFor();
  await row(page, hash).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Close" }).click();
};

const logIn = async () => endBy(await open(), o.session);

const useAll = async () => {
  // What is there: servers with state and last error, sessions, plot, refusals, replicas.
  const page = await open({ colorScheme: "light", viewport: { width: 1280, height: 1180 } });
  await watchShifts(page);
  const failing = page.locator("#server-list .failing");
  assert.match(await failing.innerText(), new RegExp(o.failing));
  assert.match(await failing.innerText(), /Last error, .*exited/);
  assert.ok(await page.locator("#server-list .working").count() >= 1, "no server is shown as working");
  const named = row(page, o.session);
  assert.ok((await named.innerText()).includes(o.name), "the client's name is not shown as it is: " + await named.innerText());
  assert.ok((await page.locator("#refusal-rows").innerText()).includes(o.tool), "the tool's name is not shown as it is");
  assert.match(await page.locator("#reasons").innerText(), /session_not_found/);
  assert.match(await page.locator("#replica-list").innerText(), /this process|lease/);
  assert.match(await page.locator("#readout").innerText(), /calls per second/);
  assert.ok((await page.locator("#calls-plot .line").getAttribute("d")).length > 100, "nothing is plotted");
  assert.equal(await page.evaluate(() => window.injected), undefined, "markup in a name ran");
  assert.equal(await page.locator("main img, main b.injected, dialog img").count(), 0, "markup in a name became elements");

  // It is live: nothing is reloaded, and nothing moves.
  await nextLook(page);
  await nextLook(page);
  const shifts = await page.evaluate(() => window.shifts);
  assert.ok(shifts < 0.01, "the layout shifts by " + shifts);
  const light = await background(page);
  await shot(page, "light");

  // The filter.
  await page.getByLabel("Filter").fill(o.other);
  await row(page, o.session).waitFor({ state: "detached" });
  assert.equal(await page.locator("#session-rows tr").count(), 1);
  await page.getByLabel("Filter").fill("nothing is called so");
  await page.getByText("No session fits the filter.").waitFor();
  await page.getByLabel("Filter").fill("");
  await row(page, o.session).waitFor();

  // By keyboard alone: to the sessions, into one, read its messages, begin to end it, think better of it, out.
  const hand = await open({ colorScheme: "light", viewport: { width: 1280, height: 1180 } });
  await hand.keyboard.press("Tab");
  assert.match(await hand.evaluate(() => document.activeElement.textContent), /Skip to the sessions/);
  await hand.keyboard.press("Enter");
  const focused = () => hand.evaluate(() => document.activeElement.getAttribute("aria-label") || document.activeElement.id || document.activeElement.textContent);
  const tabTo = async (want) => {
    for (let i = 0; i < 60; i++) {
      await hand.keyboard.press("Tab");
      if ((await focused()).includes(want)) return;
    }
    assert.fail("the keyboard does not reach " + want);
  };
  await tabTo("Session " + o.session);
  assert.notEqual(await hand.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none", "the focus is not seen");
  await hand.keyboard.press("Enter");
  const read = hand.locator("#detail");
  await read.getByText("tools/call").first().waitFor();
  const text = await read.innerText();
  for (const part of [o.name, "initialize", "handshake", "Streamable HTTP"]) assert.ok(text.includes(part), "the session's page does not say " + part + ": " + text);
  assert.ok(!text.includes("contents of a call"), "contents of a message are shown");
  assert.match(text, /\d B/);
  await shot(hand, "session");
  await tabTo("end");
  await hand.keyboard.press("Enter");
  await hand.locator("#confirm").waitFor();
  assert.equal(await focused(), "confirm-no", "the harmless button does not have the focus");
  await hand.keyboard.press("Escape");
  await hand.locator("#confirm").waitFor({ state: "hidden" });
  await hand.keyboard.press("Escape");
  await read.waitFor({ state: "hidden" });
  assert.ok((await focused()).includes(o.session), "the focus does not come back to the row");

  // The plot by keyboard.
  await hand.locator("#plot").focus();
  const now = await hand.locator("#plot").getAttribute("aria-valuetext");
  await hand.keyboard.press("Home");
  assert.notEqual(await hand.locator("#plot").getAttribute("aria-valuetext"), now);

  // End the session: the row goes, the others stay.
  await endBy(page, o.session);
  assert.equal(await row(page, o.other).count(), 1);
  o.session = o.other;

  // Dark.
  const night = await open({ colorScheme: "dark", viewport: { width: 1280, height: 1180 } });
  assert.notEqual(await background(night), light, "dark and light look the same");
  await shot(night, "dark");

  // A phone: nothing beside the window, and a session can be opened.
  const phone = await open({ colorScheme: "light", viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
  assert.ok(await overflow(phone) <= 0, "at 375 px the page scrolls sideways by " + await overflow(phone));
  await shot(phone, "phone");
  await phone.getByRole("button", { name: "Session " + o.session }).tap();
  await phone.locator("#detail").getByText("initialize").first().waitFor();
  assert.ok(await overflow(phone) <= 0, "with a session open the page scrolls sideways");
  const box = await phone.locator("#detail").boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 375, "the session is wider than the phone: " + JSON.stringify(box));
  await shot(phone, "phone-session");
};

try {
  await (o.password ? logIn() : useAll());
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));

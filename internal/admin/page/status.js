"use strict";
// Every text that comes from elsewhere is set as textContent: names of clients,
// servers and tools are shown as they are, whatever stands in them.
(() => {
  const pause = 2000; // milliseconds between two looks
  const patience = 10000; // for one answer
  const shown = 500; // rows of a table
  const $ = (id) => document.getElementById(id);

  // make(tag, class, text) is a new element.
  const make = (tag, cls, text) => {
    const e = document.createElement(tag);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const text = (e, value) => { if (e.textContent !== value) e.textContent = value; };

  // rows keeps the children of a list in step with items: what has the same key
  // stays the same element, so that focus and selection stay, too.
  const rows = (parent, items, key, build, update) => {
    const old = new Map();
    for (const e of parent.children) old.set(e.dataset.key, e);
    let at = parent.firstElementChild;
    const times = new Map();
    for (const item of items) {
      const name = key(item), n = times.get(name) || 0;
      times.set(name, n + 1);
      const k = n + " " + name; // keys are unique, whatever key says
      let e = old.get(k);
      if (e) old.delete(k);
      else { e = build(item); e.dataset.key = k; }
      update(e, item);
      if (e === at) at = at.nextElementSibling;
      else parent.insertBefore(e, at);
    }
    for (const e of old.values()) e.remove();
  };

  // cells builds a row; a column is [class, label for narrow screens].
  const cells = (columns) => () => {
    const tr = make("tr");
    for (const [cls, label] of columns) {
      const td = make("td", cls);
      if (label) td.dataset.label = label;
      tr.append(td);
    }
    return tr;
  };

  const span = (seconds) => {
    const s = Math.floor(seconds);
    const two = (n) => String(n).padStart(2, "0");
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " m " + two(s % 60) + " s";
    if (s < 86400) return Math.floor(s / 3600) + " h " + two(Math.floor(s / 60) % 60) + " m";
    return Math.floor(s / 86400) + " d " + two(Math.floor(s / 3600) % 24) + " h";
  };
  const clock = (iso) => new Date(iso).toLocaleTimeString("en-GB");
  const moment = (iso) => {
    const d = new Date(iso);
    return (d.toDateString() === new Date().toDateString() ? "" : d.toLocaleDateString("en-CA") + " ") + clock(iso);
  };
  const size = (n) => n < 1024 ? n + " B" : n < 1048576 ? (n / 1024).toFixed(1) + " KiB" : (n / 1048576).toFixed(1) + " MiB";
  const ms = (v) => v === null ? "–" : v < 1 ? Math.round(v * 1000) + " µs" : v < 1000 ? v.toPrecision(3) + " ms" : (v / 1000).toPrecision(3) + " s";
  const many = (n, one) => n + " " + one + (n === 1 ? "" : "s");

  const api = async (path, options) => {
    const answer = await fetch("/api/v1/" + path, { cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(patience), ...options });
    if (answer.status === 204) return null;
    const body = await answer.json().catch(() => ({ error: "HTTP status " + answer.status }));
    if (!answer.ok) throw Object.assign(new Error(body.error), { status: answer.status });
    return body;
  };

  // Servers.
  const svg = (tag, attributes) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    return e;
  };
  const buildServer = () => {
    const li = make("li");
    const signal = svg("svg", { class: "signal", viewBox: "0 0 32 40", "aria-hidden": "true" });
    signal.append(svg("path", { class: "post", d: "M8 8v30M3 38h10" }), svg("rect", { class: "arm", x: 8, y: 14, width: 19, height: 6 }));
    const name = make("div");
    name.append(make("div", "name"), make("div", "soft"));
    const state = make("div", "state");
    state.append(make("div", "word"), make("div", "soft"));
    li.append(signal, name, state, make("div", "addresses"), make("div", "failure"));
    return li;
  };
  const updateServer = (li, s) => {
    li.className = "server " + s.state;
    const [, name, state, addresses, failure] = li.children;
    text(name.children[0], s.name);
    text(name.children[1], s.kind + (s.isolation ? ", isolation " + s.isolation : "") + (s.era ? ", era " + s.era : "") + ", " + s.started + " started");
    text(state.children[0], s.state);
    text(state.children[1], many(s.sessions, "session"));
    text(addresses, (s.addresses || []).map((a) => a.address + (a.down ? " down" : "") + " (" + a.sessions + ")").join("  "));
    text(failure, s.failure ? "Last error, " + moment(s.failed_at) + ": " + s.failure : "");
  };

  // Sessions.
  let sessions = [];
  const sessionColumns = [["", ""], ["clip wide", "Server"], ["wide", ""], ["", ""], ["num", "Age"], ["num", "Idle"], ["num", "Calls"], ["num", "Streams"]];
  const buildSession = (s) => {
    const tr = cells(sessionColumns)();
    const open = make("button", "open", s.session);
    open.type = "button";
    open.setAttribute("aria-label", "Session " + s.session + ", show its messages");
    tr.children[0].append(open);
    tr.children[2].append(make("span"), make("span", "sub"));
    tr.children[3].append(make("span"), make("span", "sub"));
    tr.addEventListener("click", () => { if (!String(getSelection())) { open.focus(); show(s.session); } });
    return tr;
  };
  const updateSession = (tr, s) => {
    const td = tr.children;
    text(td[1], s.server);
    text(td[2].children[0], client(s));
    text(td[2].children[1], s.principal || "");
    text(td[3].children[0], transport(s));
    text(td[3].children[1], s.state === "opening" ? "opening" : s.revision || "");
    text(td[4], span(s.age_seconds));
    text(td[5], span(s.idle_seconds));
    text(td[6], String(s.calls_in_flight));
    text(td[7], String(s.streams));
  };
  const client = (s) => [s.client, s.client_version].filter(Boolean).join(" ") || "–";
  const transport = (s) => s.transport === "sse" ? "HTTP+SSE" : s.transport === "streamable" ? "Streamable HTTP" : s.transport;
  const drawSessions = () => {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = sessions.filter((s) => {
      const all = [s.session, s.server, s.principal, s.client, s.client_version, s.transport, transport(s), s.revision, s.era, s.state].join(" ").toLowerCase();
      return words.every((w) => all.includes(w));
    });
    rows($("session-rows"), fits.slice(0, shown), (s) => s.session + " " + s.created, buildSession, updateSession);
    text($("session-count"), words.length ? fits.length + " of " + sessions.length : String(sessions.length));
    const empty = $("session-empty");
    empty.hidden = fits.length > 0 && fits.length <= shown;
    text(empty, fits.length > shown ? "The first " + shown + " are shown; filter for the others." : sessions.length ? "No session fits the filter." : "No client has a session.");
  };

  // Replicas.
  const drawReplicas = (list) => {
    const error = $("replica-error");
    error.hidden = !list.error;
    text(error, list.error || "");
    rows($("replica-list"), list.replicas, (r) => r.id || "alone", () => {
      const li = make("li", "replica");
      li.append(make("code"), make("span"), make("span", "lease"));
      return li;
    }, (li, r) => {
      text(li.children[0], r.id || "this process");
      text(li.children[1], r.id ? (r.address || "") + (r.self ? " (this one)" : "") : "");
      text(li.children[2], !r.id ? "alone: sessions are in its memory" : r.lease_seconds ? "lease ends in " + r.lease_seconds.toFixed(1) + " s" : "lease not known");
      if (r.self) text($("about"), [r.version && "version " + r.version, r.id && "replica " + r.id].filter(Boolean).join(", "));
    });
  };

  // Refusals.
  const drawRefusals = (list) => {
    const reasons = new Map();
    let total = 0;
    for (const r of list) {
      reasons.set(r.reason, (reasons.get(r.reason) || 0) + r.count);
      total += r.count;
    }
    text($("refusal-count"), String(total));
    const sorted = [...reasons].sort((a, b) => b[1] - a[1]);
    rows($("reasons"), sorted, (r) => r[0], () => {
      const li = make("li");
      li.append(make("b"), " ", make("span"));
      return li;
    }, (li, r) => { text(li.children[0], String(r[1])); text(li.children[1], r[0]); });
    $("refusal-empty").hidden = list.length > 0;
    rows($("refusal-rows"), list, (r) => [r.first, r.what, r.reason, r.server, r.session, r.detail].join("\n"),
      cells([["", ""], ["", ""], ["wide", ""], ["clip", ""], ["wide", ""], ["num", "Times"]]), (tr, r) => {
        const td = tr.children;
        text(td[0], clock(r.last));
        text(td[1], r.what);
        td[1].className = r.what === "dropped" ? "dropped" : "refused";
        text(td[2], r.reason);
        text(td[3], r.server || "");
        text(td[4], [r.session && "session " + r.session, r.detail].filter(Boolean).join(", "));
        text(td[5], String(r.count));
      });
  };

  // The plot.
  let series = null;
  let calls = []; // per second, by bucket
  let at = -1; // the bucket that is read; -1: the last
  const scale = (top) => {
    const unit = 10 ** Math.floor(Math.log10(top));
    return unit * [1, 2, 5, 10].find((n) => n * unit >= top);
  };
  // path draws a line through values, at a height from 0 to 1, with gaps where
  // there is none.
  const path = (values, height) => {
    let d = "", pen = "M";
    values.forEach((v, i) => {
      if (v === null) { pen = "M"; return; }
      d += pen + i + " " + (100 - 97 * Math.max(0, height(v))).toFixed(2) + (pen === "M" ? "h.01" : "");
      pen = "L";
    });
    return d;
  };
  const drawPlot = () => {
    const b = series.buckets, width = series.bucket_seconds;
    calls = b.map((x) => x.calls / width);
    // What of the last one is still to come is taken from the one before.
    const filled = Math.min(1, Math.max(0, (Date.now() - Date.parse(b.at(-1).start)) / 1000 / width));
    calls[b.length - 1] += calls[b.length - 2] * (1 - filled);
    const callsTop = scale(Math.max(...calls, 0.1)), rate = (v) => v / callsTop;
    // Times differ by orders of magnitude: their axis is logarithmic, from 10 µs.
    const decades = Math.max(2, Math.ceil(Math.log10(Math.max(...b.map((x) => x.added_ms_p99 || 0), 0.1)) + 2));
    const time = (v) => (Math.log10(Math.max(v, 0.01)) + 2) / decades;
    const [area, line] = $("calls-plot").children;
    line.setAttribute("d", path(calls, rate));
    area.setAttribute("d", path(calls, rate) + "L" + (calls.length - 1) + " 100L0 100Z");
    const [p99, median] = $("added-plot").children;
    p99.setAttribute("d", path(b.map((x) => x.added_ms_p99), time));
    median.setAttribute("d", path(b.map((x) => x.added_ms_median), time));
    text($("calls-top"), callsTop + " calls/s");
    text($("added-top"), "10 µs to " + ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"][Math.min(decades - 2, 5)] + " added, logarithmic");
    read();
  };
  const read = () => {
    const b = series.buckets, i = at < 0 ? b.length - 1 : at, x = b[i];
    const words = clock(x.start) + ": " + calls[i].toFixed(1) + " calls per second" + (x.measured
      ? "; Signalbox added " + ms(x.added_ms_median) + " (median), " + ms(x.added_ms_p99) + " (99th percentile), " + ms(x.added_ms_max) + " at most"
      : "; nothing measured");
    text($("readout"), words);
    const plot = $("plot");
    plot.setAttribute("aria-valuemin", "0");
    plot.setAttribute("aria-valuemax", String(b.length - 1));
    plot.setAttribute("aria-valuenow", String(i));
    plot.setAttribute("aria-valuetext", words);
    $("cursor").style.left = 100 * i / (b.length - 1) + "%";
  };
  const readAt = (i) => {
    if (!series) return;
    const last = series.buckets.length - 1;
    at = i >= last ? -1 : Math.max(0, i);
    read();
  };
  $("plot").addEventListener("pointermove", (e) => {
    const box = $("plot").getBoundingClientRect();
    if (series) readAt(Math.round((e.clientX - box.left) / box.width * (series.buckets.length - 1)));
  });
  $("plot").addEventListener("pointerleave", () => readAt(Infinity));
  $("plot").addEventListener("keydown", (e) => {
    if (!series) return;
    const last = series.buckets.length - 1, now = at < 0 ? last : at;
    const to = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, PageDown: now - 6, PageUp: now + 6, Home: 0, End: last }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    readAt(to);
  });

  // One session.
  let open = ""; // its hash
  const fact = (name, value) => ({ name, value });
  const drawDetail = (d) => {
    const s = d.session;
    rows($("facts"), [
      fact("Server", s.server), fact("Client", client(s)), fact("Principal", s.principal || "–"),
      fact("Transport", transport(s)), fact("Era", s.era + (s.revision ? ", revision " + s.revision : "")), fact("State", s.state),
      fact("Age", span(s.age_seconds)), fact("Last seen", span(s.idle_seconds) + " ago"),
      fact("Calls in flight", String(s.calls_in_flight)), fact("Open streams", String(s.streams)),
    ], (f) => f.name, (f) => {
      const e = make("div");
      e.append(make("dt", "", f.name), make("dd"));
      return e;
    }, (e, f) => text(e.children[1], f.value));
    rows($("message-rows"), [...d.messages].reverse(), (m) => [m.time, m.direction, m.kind, m.id].join(" "),
      cells([["", ""], ["", ""], ["wide", ""], ["mono", "id"], ["num", ""], ["num", "took"]]), (tr, m) => {
        const td = tr.children;
        text(td[0], clock(m.time));
        text(td[1], m.direction === "from_client" ? "→ server" : "← client");
        if (!td[2].children.length) td[2].append(make("span"), make("span", "sub"), make("span", "reason"));
        text(td[2].children[0], m.method || "–");
        text(td[2].children[1], m.kind);
        text(td[2].children[2], m.reason ? "error of Signalbox: " + m.reason : "");
        text(td[3], m.id || "");
        text(td[4], size(m.bytes));
        text(td[5], m.duration_ms === undefined ? "" : ms(m.duration_ms));
      });
  };
  const show = async (hash) => {
    open = hash;
    text($("detail-hash"), hash);
    text($("detail-note"), "");
    $("facts").replaceChildren();
    $("message-rows").replaceChildren();
    $("end").disabled = false;
    if (!$("detail").open) $("detail").showModal();
    await look();
  };
  const over = () => {
    text($("detail-note"), "The session has ended.");
    if (document.activeElement === $("end")) $("detail-close").focus();
    $("end").disabled = true;
  };
  const look = async () => {
    const hash = open;
    if (!hash) return;
    if (!sessions.some((s) => s.session === hash)) { over(); return; }
    try {
      const d = await api("sessions/" + hash);
      if (open === hash) drawDetail(d);
    } catch (err) {
      if (open !== hash) return;
      if (err.status === 404) over();
      else text($("detail-note"), "Not up to date: " + err.message);
    }
  };
  $("detail").addEventListener("close", () => { open = ""; });
  $("detail-close").addEventListener("click", () => $("detail").close());
  $("end").addEventListener("click", () => {
    const s = sessions.find((s) => s.session === open);
    text($("confirm-text"), "Session " + open + (s ? " of " + client(s) + " at " + s.server : "") + ". Its calls end with an error, and its client has to begin anew.");
    $("confirm").showModal();
  });
  $("confirm-no").addEventListener("click", () => $("confirm").close());
  $("confirm-yes").addEventListener("click", async () => {
    const hash = open;
    $("confirm").close();
    try {
      await api("sessions/" + hash, { method: "DELETE" });
      sessions = sessions.filter((s) => s.session !== hash);
      drawSessions();
      if (open === hash) over();
      say("session " + hash + " has ended");
      turn();
    } catch (err) {
      text($("detail-note"), "Not ended: " + err.message);
    }
  });
  $("filter").addEventListener("input", drawSessions);

  // Live. Only what changes is said, so that a screen reader is not told the
  // same every 2 s.
  const say = (words, cls) => { text($("live-text"), words); $("live").className = cls || ""; };
  const part = async (name, draw) => draw(await api(name));
  let timer = 0, turning = false;
  const turn = async () => {
    clearTimeout(timer);
    if (turning) return;
    turning = true;
    // The replicas are apart: while the store is away they take long.
    const replicas = part("replicas", drawReplicas).catch(() => {});
    const results = await Promise.allSettled([
      part("servers", (b) => rows($("server-list"), b.servers, (s) => s.name, buildServer, updateServer)),
      part("sessions", (b) => { sessions = b.sessions; drawSessions(); return look(); }),
      part("series", (b) => { series = b; drawPlot(); }),
      part("refusals", (b) => drawRefusals(b.refusals)),
    ]);
    const failed = results.find((r) => r.status === "rejected");
    if (failed) say(failed.reason.status === 401 ? "the token is no longer good; reload" : "no answer, trying on", "lost");
    else if (!$("live-text").textContent.startsWith("session ") || timer) say("live");
    await Promise.race([replicas, new Promise((done) => setTimeout(done, pause))]);
    turning = false;
    if (!document.hidden) timer = setTimeout(turn, pause);
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { clearTimeout(timer); say("paused", "paused"); }
    else turn();
  });
  turn();
})();

// The page: says what to say over a WebSocket, plays what comes back, shows both.

import { Line } from "./line.js";
import { PASSAGES, QUESTIONS } from "./passages.js";
import { Player } from "./player.js";
import { Reply, ServerClock } from "./reply.js";
import { Transcript } from "./transcript.js";
import { optionsOf } from "./voices.js";
import { Waterfall } from "./waterfall.js";

const SAMPLE_RATE = 24000; // until a turn tells its own
const STILL = matchMedia("(prefers-reduced-motion: reduce)").matches;
const DRAW_MS = STILL ? 500 : 100;
const NOT_BEGUN_MS = 500; // after the line is back, a turn that is not told of by then was never taken
const MODES = ["stream", "batch"];

const $ = (id) => document.getElementById(id);
const now = () => performance.timeOrigin + performance.now();

const line = new Line();
const player = new Player();
const transcript = new Transcript($("reply"));
const waterfall = new Waterfall($("waterfall"), $("figures"));
const firstSound = { asked: "", stream: null, batch: null }; // milliseconds, for what was asked

let passages = PASSAGES;
let answers = false; // whether a model answers what is asked; else it is said as it is
let clock = new ServerClock();
let reply = null; // the last one that was asked for; it is on while `reply.over` is null
let says = null; // what was sent for it
let queue = []; // modes still to be spoken
let presses = 0; // of Speak
const cancels = new Map(); // name of a turn → {frame, reply, silentMs, sentAt}, until its receipt

const on = () => reply !== null && reply.over === null;

// -- the line ---------------------------------------------------------------------------------------

line.onopen = () => {
  $("token-form").hidden = true;
  showLine("open", "Connected");
  for (const { frame } of cancels.values()) line.send(frame);
  const asked = says;
  if (on() && !reply.begun) {
    setTimeout(() => {
      if (says === asked && on() && !reply.begun) line.send(says);
    }, asked.sent ? NOT_BEGUN_MS : 0);
  }
  update();
};

line.onclose = () => {
  clock = new ServerClock(); // another network may have another delay
  showLine("wait", on() ? "Line lost, coming back…" : "Connecting…");
  update();
};

line.onrefused = (status) => {
  if (status === 429) {
    showLine("lost", "Too many callers, trying again…");
    return;
  }
  showLine("lost", line.token ? "The agent does not know this token" : "The agent asks for a token");
  const wasHidden = $("token-form").hidden;
  $("token-form").hidden = false;
  if (wasHidden) $("token").focus();
};

line.onevent = (event) => {
  if (event.id) clock.see(event.id, now());
  if (event.type === "turn_cancelled") return receive(event);
  const ours = on() && (event.turn === reply.name || event.turn === undefined);
  if (ours) handlers[event.type]?.(event);
};

const handlers = {
  agent_start: () => { reply.begun = true; },
  text_delta: ({ text, start }) => {
    reply.write(start ?? reply.characters.length, text, now());
    transcript.grow(reply);
  },
  turn_started: ({ sample_rate }) => {
    reply.begun = true;
    reply.rate = sample_rate;
    if (sample_rate !== player.rate) player.start(sample_rate);
  },
  segment_started: (event) => {
    const segment = reply.begin(event, clock, now());
    if (segment) transcript.add(reply, segment);
  },
  segment_restarted: ({ n }) => {
    const position = reply.restart(n);
    if (position !== undefined) player.restart(position);
  },
  segment_done: ({ n, samples, words }) => reply.finish(n, samples, words, now()),
  turn_done: ({ reason }) => {
    reply.done = true;
    if (reason === "failed" || reason === "abandoned") reply.trouble ??= "The reply broke off.";
    if (reply.received) player.end();
    else finish(reply.trouble ?? "There was nothing to say.");
  },
  gap: () => { reply.trouble = "The line was away for too long: audio is missing."; },
  closed: () => finish("The session was closed."),
  error: ({ message, n, code, turn }) => {
    if (code === "turn_taken") return; // it was asked for twice, to be sure
    if (n !== undefined) reply.trouble = `A sentence was left out: ${message}.`;
    else if (code === "state_lost" && turn !== undefined) return;
    else if (code === "source_failed") reply.trouble = "The reply broke off.";
    else abandon(`That did not work: ${message}.`);
  },
};

line.onaudio = ({ turn, n, offset }, bytes) => {
  if (!on() || turn !== reply.name) return;
  const known = reply.hear(n, offset, bytes.length / 2);
  if (known !== null && 2 * known < bytes.length) player.append(bytes.slice(2 * known));
};

// -- the sound --------------------------------------------------------------------------------------

player.onposition = (position) => {
  if (!on() || !reply.rate) return;
  const at = now();
  if (reply.soundedAt !== null) {
    const heard = reply.played(position, at);
    if (heard) transcript.mark(heard.segment.n, heard.word);
    reply.see(position, at);
  }
};

player.onsounding = () => {
  if (!on()) return;
  tell("Speaking");
  if (reply.soundedAt !== null) return;
  reply.soundedAt = now();
  firstSound[reply.mode] = reply.soundedAt - reply.askedAt;
};

player.onwaiting = () => {
  if (!on()) return;
  reply.waits.push(now());
  tell("Waiting for more audio");
};

player.ondrained = () => {
  if (on() && reply.done) finish(reply.trouble ?? (reply.missing ? "Done; some audio was lost on the way." : "Done"));
};

// -- what a person does -----------------------------------------------------------------------------

async function speak() {
  if (!line.open || !$("form").reportValidity()) return;
  const mode = new FormData($("form")).get("mode");
  const mine = ++presses;
  if (on()) await interrupt();
  if (mine !== presses) return; // pressed again meanwhile
  queue = mode === "both" ? [...MODES] : [mode];
  ask();
}

async function ask() {
  const mode = queue.shift();
  const what = {
    [answers ? "prompt" : "text"]: $("text").value,
    voice: $("voice").value || undefined,
    tokens_per_second: $("pace").valueAsNumber,
  };
  const asked = JSON.stringify(what);
  if (firstSound.asked !== asked) Object.assign(firstSound, { asked, stream: null, batch: null });
  const mine = new Reply(`page-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`, mode, now());
  reply = mine;
  says = { type: "say", turn: mine.name, mode, ...what };
  transcript.clear();
  waterfall.clear();
  $("time").classList.remove("fresh");
  $("receipt").hidden = $("guessed").hidden = true;
  bringReplyIntoView();
  tell(mode === "batch" ? "Writing; the voice waits until it is done" : "Writing");
  update();
  try {
    await player.start(SAMPLE_RATE);
  } catch {
    if (reply === mine) finish("This browser plays no sound here. Reload the page, or try another.");
    return;
  }
  if (reply !== mine || !on()) return; // interrupted meanwhile
  mine.askedAt = now();
  line.send(says);
  says.sent = true;
}

async function interrupt() {
  if (!on()) return;
  queue = [];
  const cut = reply;
  const clicked = performance.now();
  const silence = player.silence();
  finish("Interrupted");
  const position = await silence;
  const silentMs = performance.now() - clicked;
  if (cut === reply) markCut(position);
  const segment = cut.segments.findLast((one) => one.position <= position);
  const played = segment && { turn: cut.name, n: segment.n, samples: position - segment.position };
  const frame = { type: "cancel", turn: cut.name, played };
  cancels.set(cut.name, { frame, reply: cut, silentMs, sentAt: performance.now() });
  line.send(frame);
}

// The receipt of a cancel, ours or, after the line was away for too long, the agent's own.
function receive(event) {
  const names = [event.turn, ...(event.turns ?? [])];
  const asked = names.map((name) => cancels.get(name)).find(Boolean);
  for (const name of names) cancels.delete(name);
  if (asked) {
    if (asked.reply === reply) showReceipt(event, asked);
  } else if (on() && names.includes(reply.name)) {
    const position = player.position;
    abandon("The line was away for too long, and the agent stopped.");
    markCut(position);
  }
}

function abandon(message) {
  queue = [];
  player.silence();
  finish(message);
}

function markCut(position) {
  const heard = reply.soundedAt === null ? undefined : reply.played(position, reply.over);
  if (heard) transcript.mark(heard.segment.n, heard.word);
  transcript.cut(heard?.over);
}

function finish(message) {
  if (!on()) return;
  const at = now();
  reply.over = at;
  for (const segment of reply.segments) {
    if (segment.heardFrom !== null) segment.heardTo ??= at;
  }
  transcript.rest();
  $("guessed").hidden = reply.segments.every(({ heardFrom, exact }) => heardFrom === null || exact);
  tell(message);
  draw();
  waterfall.tabulate(reply);
  update();
  if (queue.length) ask();
}

// -- what is shown ----------------------------------------------------------------------------------

const secondsOf = (ms) => (ms === null ? "–" : `${(ms / 1000).toFixed(2)} s`);

function tell(message) {
  $("status").textContent = message;
}

function showLine(state, message) {
  $("line").dataset.state = state;
  $("line").textContent = message;
}

// On a phone the reply stands below what is asked.
function bringReplyIntoView() {
  const title = $("reply-title");
  if (title.getBoundingClientRect().top > 0.6 * innerHeight) {
    title.scrollIntoView({ block: "start", behavior: STILL ? "auto" : "smooth" });
  }
}

function update() {
  $("speak").disabled = !line.open;
  $("stop").disabled = !on();
  document.body.classList.toggle("on", on());
}

function showReceipt({ heard }, { silentMs, sentAt }) {
  const words = heard?.text?.trim();
  $("heard").textContent = words || "Nothing yet.";
  const figures = [`Silent ${Math.round(silentMs)} ms after you interrupted`];
  figures.push(`receipt ${Math.round(performance.now() - sentAt)} ms later`);
  if (heard && reply.rate) figures.push(`${(heard.samples / reply.rate).toFixed(2)} s heard`);
  $("receipt-figures").textContent = `${figures.join(", ")}.`;
  $("receipt").hidden = false;
  const count = words ? words.split(/\s+/).length : 0;
  tell(`Interrupted; you heard ${count === 1 ? "one word" : `${count} words`}`);
}

function showFigures() {
  const { stream, batch } = firstSound;
  const longest = Math.max(stream ?? 0, batch ?? 0, 1);
  for (const mode of MODES) {
    $(`first-${mode}`).textContent = secondsOf(firstSound[mode]);
    $(`bar-${mode}`).style.width = `${(100 * (firstSound[mode] ?? 0)) / longest}%`;
  }
  $("ratio").textContent = comparison(stream, batch);
  if (reply === null) return;
  const started = (at) => (at === null ? null : at - reply.askedAt);
  $("written").textContent = secondsOf(started(reply.writtenAt));
  $("here").textContent = reply.rate ? secondsOf((1000 * reply.received) / reply.rate) : "–";
  $("ahead").textContent = secondsOf(on() && reply.ahead.length ? 1000 * reply.ahead.at(-1).seconds : null);
  $("waits").textContent = reply.waits.length === 1 ? "once" : `${reply.waits.length} times`;
}

function comparison(stream, batch) {
  if (stream !== null && batch !== null) {
    const other = answers ? " The two answers may differ." : "";
    return `${(batch / stream).toFixed(1)}× sooner while it is written.${other}`;
  }
  const early = reply?.soundedAt && reply.over !== null && reply.mode === "stream"
    ? reply.writtenAt - reply.soundedAt : 0;
  const ahead = early > 0 ? `The first sound came ${secondsOf(early)} before the text was complete. ` : "";
  return `${ahead}Speak in both ways to compare.`;
}

function draw() {
  if (reply !== null) waterfall.draw(reply, now());
  showFigures();
}

// What the agent does with what it is given, and so what is to be asked for here.
async function learn() {
  const answer = await line.ask("v1/agent").catch(() => null);
  if (!answer?.ok) return; // what is typed is said as it is
  const agent = await answer.json();
  answers = agent.answers;
  $("text-label").textContent = answers ? "Question" : "Text";
  $("pace-field").hidden = $("pace-hint").hidden = agent.source !== "scripted";
  offer(answers ? QUESTIONS : PASSAGES);
}

function offer(list) {
  if (list === passages) return;
  passages = list;
  const own = $("passage").value === "";
  listPassages();
  $("passage").value = own ? "" : 1;
  if (!own) $("passage").onchange();
}

function listPassages() {
  const options = passages.map(({ title }, i) => new Option(title, i));
  $("passage").replaceChildren(...options, new Option("Your own", ""));
}

async function begin() {
  try {
    const answer = await line.ask("v1/voices");
    if (answer.status === 401) return line.onrefused(401);
    $("voice").replaceChildren(...optionsOf((await answer.json()).voices));
    if ($("voice").querySelector('[value="af_heart"]')) $("voice").value = "af_heart";
  } catch {
    $("voice").replaceChildren(new Option("the session's voice", ""));
  }
  await learn();
  line.connect();
}

// -- the start --------------------------------------------------------------------------------------

listPassages();
$("passage").onchange = () => {
  const chosen = passages[$("passage").value];
  if (chosen) $("text").value = chosen.text;
  else $("text").select();
};
$("text").oninput = () => { $("passage").value = ""; };
$("passage").value = 1;
$("passage").onchange();
$("form").onsubmit = (event) => { event.preventDefault(); speak(); };
$("stop").onclick = interrupt;
$("token-form").onsubmit = (event) => {
  event.preventDefault();
  line.token = $("token").value.trim();
  sessionStorage.setItem("token", line.token);
  line.failures = 0;
  begin();
};
document.onkeydown = (event) => {
  if (event.key === "Escape") interrupt();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    speak();
  }
};
addEventListener("online", () => line.refresh());
addEventListener("resize", draw);
setInterval(() => { if (on()) draw(); }, DRAW_MS);
line.token = sessionStorage.getItem("token") ?? "";
update();
draw();
begin();

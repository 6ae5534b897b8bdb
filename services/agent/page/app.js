// The page: says what to say over a WebSocket, plays what comes back, shows both.

import { PASSAGES } from "./passages.js";
import { Player } from "./player.js";
import { Transcript } from "./transcript.js";

const SAMPLE_RATE = 24000; // until a turn tells its own
const RETRY_MS = [500, 1000, 2000, 5000];

const $ = (id) => document.getElementById(id);
const player = new Player();
const transcript = new Transcript($("reply"));
const firstAudio = { stream: null, batch: null }; // milliseconds

let socket = null;
let failures = 0;
let turn = null; // the one on this page: {name, mode, askedAt, sounding, waits, trouble}
let sounding = null; // name of the turn that binary frames belong to

// -- the connection ---------------------------------------------------------------------------------

function connect() {
  socket = new WebSocket(new URL("ws", location.href.replace(/^http/, "ws")));
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    failures = 0;
    tell("Ready.");
    update();
  };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") hear(JSON.parse(data));
    else play(data);
  };
  socket.onclose = () => {
    if (turn) finish("The connection is lost; what was being said is gone.");
    else tell("Connecting…");
    update();
    setTimeout(connect, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
  };
}

function send(message) {
  socket.send(JSON.stringify(message));
}

const connected = () => socket?.readyState === WebSocket.OPEN;

// -- what comes back --------------------------------------------------------------------------------

function hear(event) {
  if (event.type === "segment_started" || event.type === "turn_started") sounding = event.turn;
  const ours = turn && (event.turn === turn.name || event.turn === undefined);
  if (ours) handlers[event.type]?.(event);
}

const handlers = {
  text_delta: ({ text }) => transcript.append(text),
  turn_started: ({ sample_rate }) => {
    if (sample_rate !== player.rate) player.start(sample_rate);
  },
  segment_started: (event) => transcript.add(event, player.received),
  segment_restarted: ({ n }) => {
    const position = transcript.positionOf(n);
    if (position !== undefined) player.restart(position);
  },
  turn_done: ({ samples }) => {
    if (samples) player.end();
    else finish(turn.trouble || "There was nothing to say.");
  },
  turn_cancelled: () => finish("Stopped."),
  closed: () => finish("The session was closed."),
  error: ({ message, n }) => {
    if (n === undefined) {
      finish(`That did not work: ${message}.`);
    } else {
      turn.trouble = `A sentence was left out: ${message}.`;
      tell(turn.trouble);
    }
  },
};

function play(pcm) {
  if (!turn || sounding !== turn.name) return;
  if (!turn.sounding) {
    turn.sounding = true;
    firstAudio[turn.mode] = performance.now() - turn.askedAt;
    showFigures();
    tell("Speaking.");
  }
  player.append(pcm);
}

player.onposition = (position) => {
  if (turn?.sounding) transcript.mark(transcript.at(position));
};
player.onwaiting = () => {
  if (!turn?.sounding) return;
  turn.waits += 1;
  $("waits").textContent = turn.waits === 1 ? "once" : `${turn.waits} times`;
};
player.ondrained = () => finish(turn?.trouble || "Done.");

// -- what a person does -----------------------------------------------------------------------------

async function speak() {
  if (!connected() || !$("form").reportValidity()) return;
  if (turn) stop();
  transcript.clear();
  $("waits").textContent = "0 times";
  const mode = new FormData($("form")).get("mode");
  const asked = { name: `page-${Date.now()}`, mode, askedAt: 0, sounding: false, waits: 0, trouble: "" };
  turn = asked;
  update();
  tell("Writing…");
  await player.start(SAMPLE_RATE);
  if (turn !== asked) return; // stopped, or cut off, meanwhile
  turn.askedAt = performance.now();
  send({
    type: "say",
    turn: turn.name,
    text: $("text").value,
    mode,
    voice: $("voice").value,
    tokens_per_second: $("pace").valueAsNumber,
  });
}

function stop() {
  if (!turn) return;
  const segment = turn.sounding ? transcript.at(player.position) : undefined;
  const played = segment && {
    turn: turn.name,
    n: segment.n,
    samples: player.position - segment.position,
  };
  if (connected()) send({ type: "cancel", turn: turn.name, played });
  player.clear();
  finish("Stopped.");
}

function finish(message) {
  if (!turn) return;
  turn = null;
  transcript.mark(undefined);
  tell(message);
  update();
}

// -- what is shown ----------------------------------------------------------------------------------

function tell(message) {
  $("status").textContent = message;
}

function update() {
  $("speak").disabled = !connected();
  $("stop").disabled = !turn;
}

function showFigures() {
  const seconds = (ms) => (ms === null ? "not measured" : `${(ms / 1000).toFixed(2)} s`);
  $("first-stream").textContent = seconds(firstAudio.stream);
  $("first-batch").textContent = seconds(firstAudio.batch);
  const both = firstAudio.stream !== null && firstAudio.batch !== null;
  $("ratio").textContent = both
    ? `Batch takes ${(firstAudio.batch / firstAudio.stream).toFixed(1)} times as long.`
    : "Speak once in each way to compare.";
}

async function listVoices() {
  const { voices } = await (await fetch("v1/voices")).json();
  $("voice").replaceChildren(...voices.map(({ id, language }) => new Option(`${id} (${language})`, id)));
  if (voices.some(({ id }) => id === "af_heart")) $("voice").value = "af_heart";
}

// -- the start --------------------------------------------------------------------------------------

$("passage").replaceChildren(...PASSAGES.map(({ title }, i) => new Option(title, i)));
$("passage").onchange = () => { $("text").value = PASSAGES[$("passage").value].text; };
$("passage").value = 1;
$("passage").onchange();
$("form").onsubmit = (event) => { event.preventDefault(); speak(); };
$("stop").onclick = stop;
document.onkeydown = (event) => {
  if (event.key === "Escape") stop();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) speak();
};
showFigures();
update();
listVoices().catch(() => $("voice").replaceChildren(new Option("the session's voice", "")));
connect();

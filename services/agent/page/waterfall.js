// Where the time went: a row for each segment, from its first token to its last sound, and below
// them how much audio was there ahead of playback. As a picture, and as a table.

const NS = "http://www.w3.org/2000/svg";
const AXIS = 26;
const ROW = 44;
const AHEAD = 84;
const EDGE = 8;
const LEAST_MS = 4000;
const LIVE_ROWS = 16; // of a long turn, while it goes on
const PAUSE_MS = 500; // without a token for so long, nothing is being written

export const COLUMNS = [
  ["First token", (segment, reply) => reply.writtenBy(segment.start)],
  ["Mark", (segment, reply) => reply.writtenBy(segment.end - 1)],
  ["Committed", (segment) => segment.committed],
  ["Synthesis", (segment) => segment.synthesis],
  ["First audio", (segment) => segment.firstAudio],
  ["Last audio", (segment) => segment.doneAt],
  ["Heard from", (segment) => segment.heardFrom],
  ["Heard until", (segment) => segment.heardTo],
];

// The phases of a segment: class, from, to. What has not happened yet lasts until now; clocks that
// differ by a little do not make a phase run backwards.
function phases(segment, reply, now) {
  const [token, mark, ...rest] = COLUMNS.map(([, time]) => time(segment, reply));
  const [committed, synthesis, firstAudio, doneAt, heardFrom, heardTo] = rest;
  const edges = [token, mark, committed, synthesis, firstAudio, doneAt ?? now];
  for (let i = edges.length - 2; i >= 0; i--) edges[i] = Math.min(edges[i] ?? Infinity, edges[i + 1]);
  const names = ["writing", "deciding", "queued", "synthesis", "arriving"];
  const made = names.map((name, i) => [name, edges[i], edges[i + 1]]);
  return heardFrom === null ? made : [...made, ["heard", heardFrom, heardTo ?? now]];
}

// What is written and not yet in any segment that sounds. Nobody tells how far it is.
function unspoken(reply) {
  const from = reply.segments.at(-1)?.end ?? 0;
  if (reply.characters.length <= from || reply.done || reply.over !== null) return null;
  const text = reply.characters.slice(from).join("").trim();
  return text ? { text, from: reply.writtenBy(from), to: reply.writtenAt } : null;
}

export class Waterfall {
  constructor(svg, table) {
    this.svg = svg;
    this.table = table;
    this.clear();
  }

  clear() {
    this.svg.replaceChildren();
    this.table.replaceChildren();
    this.rows = 0;
  }

  draw(reply, now) {
    const width = this.svg.clientWidth || 640;
    const next = unspoken(reply);
    const first = reply.over === null ? Math.max(0, reply.segments.length - LIVE_ROWS) : 0;
    const segments = reply.segments.slice(first);
    this.rows = Math.max(this.rows, segments.length + (next ? 1 : 0), 1);
    const bottom = AXIS + this.rows * ROW;
    const height = bottom + AHEAD;
    const until = reply.over ?? now;
    const end = Math.max(until, ...reply.segments.map(({ doneAt }) => doneAt ?? 0)) - reply.askedAt;
    const span = Math.max(LEAST_MS, Math.ceil(end / 2000) * 2000);
    const x = (at) => EDGE + ((at - reply.askedAt) / span) * (width - 2 * EDGE);

    const parts = [...axis(x, reply.askedAt, span, bottom, height, width)];
    const upright = (name, at) => parts.push(line(name, x(at), AXIS - 4, x(at), height - 4));
    if (reply.soundedAt !== null) upright("first", reply.soundedAt);
    if (reply.done || reply.over !== null) upright("complete", reply.writtenAt ?? reply.over);
    if (reply.over === null) upright("present", now);
    segments.forEach((segment, i) => {
      parts.push(...row(AXIS + i * ROW, `${first + i + 1}  ${segment.text.trim()}`, width));
      for (const [name, from, to] of phases(segment, reply, until)) {
        parts.push(bar(name, x(from), x(to), AXIS + i * ROW + (name === "heard" ? 33 : 19)));
      }
    });
    if (next) {
      const top = AXIS + segments.length * ROW;
      parts.push(...row(top, next.text, width), bar("writing", x(next.from), x(next.to), top + 19));
      if (now - next.to > PAUSE_MS) parts.push(bar("queued", x(next.to), x(now), top + 19));
    }
    parts.push(...this.#ahead(reply, x, bottom, height, width));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", summary(reply));
    this.svg.replaceChildren(...parts);
  }

  // Audio that is here and not played yet, in seconds, over the same time.
  #ahead(reply, x, top, height, width) {
    const floor = height - 8;
    const high = Math.max(1, ...reply.ahead.map(({ seconds }) => seconds));
    const y = (seconds) => floor - (seconds / high) * (floor - top - 34);
    const said = `Audio ahead of playback, at most ${high.toFixed(1)} s`;
    const parts = [
      text("caption", EDGE, top + 18, reply.ahead.length ? said : "Audio ahead of playback"),
      line("floor", EDGE, floor, width - EDGE, floor),
    ];
    if (reply.ahead.length) {
      const points = reply.ahead.map(({ at, seconds }) => `${round(x(at))},${round(y(seconds))}`);
      const [first, last] = [x(reply.ahead[0].at), x(reply.ahead.at(-1).at)].map(round);
      const shape = `M${first},${floor}L${points.join("L")}L${last},${floor}Z`;
      parts.push(make("path", { class: "ahead", d: shape }));
    }
    for (const at of reply.waits) parts.push(line("dry", x(at), top + 26, x(at), floor));
    return parts;
  }

  // The same in figures, once all of it is known.
  tabulate(reply) {
    const head = document.createElement("tr");
    for (const name of ["", ...COLUMNS.map(([name]) => name), "Audio"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name || "Segment";
      head.append(cell);
    }
    const rows = reply.segments.map((segment, i) => {
      const line = document.createElement("tr");
      const name = document.createElement("th");
      name.scope = "row";
      name.textContent = `${i + 1}  ${shortened(segment.text.trim(), 24)}`;
      const times = COLUMNS.map(([, time]) => secondsSince(reply.askedAt, time(segment, reply)));
      const audio = reply.rate ? `${(segment.received / reply.rate).toFixed(2)}` : "–";
      line.append(name, ...[...times, audio].map(cellOf));
      return line;
    });
    this.table.replaceChildren(head, ...rows);
  }
}

function summary(reply) {
  const count = reply.segments.length;
  const parts = [`Waterfall of ${count} ${count === 1 ? "segment" : "segments"}`];
  if (reply.soundedAt !== null) {
    parts.push(`first sound after ${secondsSince(reply.askedAt, reply.soundedAt)} s`);
  }
  if (reply.writtenAt !== null) {
    parts.push(`text until ${secondsSince(reply.askedAt, reply.writtenAt)} s`);
  }
  return `${parts.join(", ")}. The table below has the figures.`;
}

function* axis(x, zero, span, bottom, height, width) {
  const step = [1, 2, 5, 10, 20, 30, 60, 120, 300].find((s) => (span / 1000 / s) * 56 <= width) ?? 600;
  for (let second = 0; second * 1000 <= span; second += step) {
    const at = x(zero + second * 1000);
    yield line("grid", at, AXIS - 6, at, height - 8);
    const anchor = second === 0 ? "start" : at > width - 20 ? "end" : "middle";
    yield text("tick", second === 0 ? at - 2 : at, 13, `${second} s`, anchor);
  }
  yield line("floor", EDGE, bottom + 1, width - EDGE, bottom + 1);
}

function* row(top, caption, width) {
  yield text("caption", EDGE, top + 13, shortened(caption, Math.floor(width / 7.2)));
}

function bar(name, from, to, top) {
  const height = name === "heard" ? 4 : 11;
  const width = Math.max(1, round(to - from));
  return make("rect", { class: name, x: round(from), y: top, width, height, rx: height / 4 });
}

function line(name, x1, y1, x2, y2) {
  return make("line", { class: name, x1: round(x1), y1, x2: round(x2), y2 });
}

function text(name, x, y, said, anchor = "start") {
  const element = make("text", { class: name, x: round(x), y, "text-anchor": anchor });
  element.textContent = said;
  return element;
}

function make(kind, attributes) {
  const element = document.createElementNS(NS, kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function cellOf(value) {
  const cell = document.createElement("td");
  cell.textContent = value;
  return cell;
}

const round = (value) => Math.round(value * 10) / 10;
const secondsSince = (zero, at) => (at === null ? "–" : ((at - zero) / 1000).toFixed(2));
const shortened = (said, length) => (said.length > length ? `${said.slice(0, length - 1)}…` : said);

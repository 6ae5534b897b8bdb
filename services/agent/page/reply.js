// One turn as the page knows it: its text, its segments, its sound, and when what was there.
// No element and no socket here. Times are milliseconds of this page's clock, places in the turn's
// sound are samples, places in its text are characters.

import { timesOf, wordsOf } from "./words.js";

const AHEAD_KEPT = 1000;

// Entry ids are times of the server's clock. The event that came the quickest tells how far the two
// clocks are apart; what the network took of it is all that is wrong.
export class ServerClock {
  constructor() {
    this.ahead = Infinity;
  }

  // An event of this id is here now.
  see(id, now) {
    const ahead = now - millisecondsOf(id);
    if (ahead < this.ahead) this.ahead = ahead;
  }

  // When that was, on this page's clock.
  at(id) {
    return millisecondsOf(id) + this.ahead;
  }
}

const millisecondsOf = (id) => Number(id.split("-")[0]);

export class Reply {
  constructor(name, mode, askedAt) {
    this.name = name;
    this.mode = mode;
    this.askedAt = askedAt;
    this.begun = false; // the agent has said that it writes
    this.rate = 0;
    this.characters = [];
    this.tokens = []; // {end: characters written by then, at}
    this.segments = [];
    this.received = 0; // samples
    this.missing = 0; // samples that were lost on the way
    this.soundedAt = null;
    this.waits = []; // when playback ran dry
    this.ahead = []; // {at, seconds}: audio here that is not played yet
    this.done = false; // all its audio is here
    this.over = null; // when nothing more is heard
  }

  // `text` stands from `start` on; what is there already comes again after the line broke.
  write(start, text, now) {
    this.begun = true;
    const written = [...text];
    const fresh = start + written.length - this.characters.length;
    if (fresh <= 0) return;
    this.characters.push(...written.slice(written.length - fresh));
    this.tokens.push({ end: this.characters.length, at: now });
  }

  get writtenAt() {
    return this.tokens.at(-1)?.at ?? null;
  }

  segment(n) {
    return this.segments.find((segment) => segment.n === n);
  }

  // A segment begins to come. Undefined if it is known.
  begin(event, clock, now) {
    if (this.segment(event.n)) return undefined;
    const begun = event.id ? clock.at(event.id) : now;
    const segment = {
      n: event.n,
      start: event.start,
      end: event.end,
      text: this.characters.slice(event.start, event.end).join("") || event.text,
      spoken: event.spoken ?? event.text,
      position: this.received,
      received: 0,
      samples: null, // how many it has, once that is known
      told: [],
      trouble: "",
      committed: event.committed_at ? clock.at(event.committed_at) : null,
      synthesis: begun - event.ttfb_ms,
      firstAudio: now,
      doneAt: null,
      heardFrom: null,
      heardTo: null,
    };
    segment.words = wordsOf(segment.text);
    this.segments.push(segment);
    this.#place(segment);
    return segment;
  }

  // Where its audio begins again, in the turn; undefined if it is not known.
  restart(n) {
    const segment = this.segment(n);
    if (!segment) return undefined;
    segment.received = 0;
    this.received = segment.position;
    return segment.position;
  }

  // Audio of segment `n` from its sample `offset` on. Returns how many of its first samples are here
  // already, or null if it belongs nowhere.
  hear(n, offset, count) {
    const segment = this.segment(n);
    if (!segment) return null;
    const known = Math.min(Math.max(0, segment.received - offset), count);
    this.missing += Math.max(0, offset - segment.received);
    segment.received += count - known;
    this.received += count - known;
    return known;
  }

  finish(n, samples, words, now) {
    const segment = this.segment(n);
    if (!segment) return undefined;
    segment.samples = samples;
    segment.told = words ?? [];
    segment.doneAt = now;
    this.#place(segment);
    return segment;
  }

  // Playback is at `position`. Returns the segment that sounds, the number of its word, and whether
  // that word is over.
  played(position, now) {
    const segment = this.segments.findLast((one) => one.position <= position);
    if (!segment) return undefined;
    segment.heardFrom ??= now;
    for (const one of this.segments) {
      const past = one !== segment || (one.samples !== null && position >= one.position + one.received);
      if (one.heardFrom !== null && one.heardTo === null && past) one.heardTo = now;
    }
    const seconds = (position - segment.position) / this.rate;
    const word = Math.max(0, segment.begins.findLastIndex((begin) => begin <= seconds));
    return { segment, word, over: segment.ends[word] <= seconds };
  }

  // How much audio is there beyond `position` now. Of a long turn it is known less closely.
  see(position, now) {
    this.ahead.push({ at: now, seconds: Math.max(0, this.received - position) / this.rate });
    if (this.ahead.length > AHEAD_KEPT) this.ahead = this.ahead.filter((_, i) => i % 2 === 0);
  }

  // When the character at this place of the text was there.
  writtenBy(character) {
    return this.tokens.find(({ end }) => end > character)?.at ?? null;
  }

  #place(segment) {
    const known = segment.samples !== null;
    const seconds = known && this.rate ? segment.samples / this.rate : undefined;
    Object.assign(segment, timesOf(segment.text, segment.words, segment.told, seconds, segment.spoken));
  }
}

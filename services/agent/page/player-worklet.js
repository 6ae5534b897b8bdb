// Plays samples as they arrive. A small buffer is filled before the first sound, and again whenever
// the samples run out, so that audio that comes in bursts sounds even; each time it runs dry within
// a turn the buffer holds twice as much, up to a limit.
//
// in:  {samples: Float32Array}  follows what came before
//      {restart: position}      forget everything from this position on, it comes again
//      {end: true}              nothing more comes for now: play what is there
//      {clear: id}              silence, at once; positions begin at 0 again
// out: {position}               samples played, about 30 times a second
//      {sounding: position}     sound begins here, at first or again
//      {waiting: true}          ran out of samples while more were to come
//      {drained: true}          all is played
//      {cleared: id, position}  the last sample that was heard before the silence

const BUFFER_S = 0.08;
const MAX_BUFFER_S = 0.4;
const REPORT_S = 0.03;

class Player extends AudioWorkletProcessor {
  constructor() {
    super();
    this.tail = null; // what is left of a sound that was cut off: it fades within one block
    this.clear();
    this.port.onmessage = ({ data }) => this.take(data);
  }

  clear() {
    this.chunks = []; // not yet played
    this.offset = 0; // played of the first of them
    this.played = 0;
    this.received = 0;
    this.skip = 0; // samples that come again and have been heard
    this.filling = true;
    this.ended = false;
    this.buffer = BUFFER_S;
    this.reportAt = 0;
  }

  take(message) {
    if (message.samples) {
      this.append(message.samples);
    } else if (message.restart !== undefined) {
      this.restart(message.restart);
    } else if (message.end) {
      this.ended = true;
      if (!this.chunks.length) this.port.postMessage({ drained: true });
    } else if (message.clear !== undefined) {
      this.tail = this.filling ? null : this.chunks[0]?.slice(this.offset);
      this.port.postMessage({ cleared: message.clear, position: this.played });
      this.clear();
    }
  }

  append(samples) {
    this.ended = false;
    this.received += samples.length;
    const heard = Math.min(this.skip, samples.length);
    this.skip -= heard;
    if (heard < samples.length) this.chunks.push(samples.subarray(heard));
  }

  restart(position) {
    let excess = this.received - Math.max(position, this.played);
    while (excess > 0 && this.chunks.length) {
      const last = this.chunks.pop();
      const rest = last.length - (this.chunks.length ? 0 : this.offset);
      if (rest > excess) this.chunks.push(last.subarray(0, last.length - excess));
      excess -= rest;
    }
    if (!this.chunks.length) this.offset = 0;
    this.received = position;
    this.skip = Math.max(0, this.played - position);
  }

  process(_inputs, outputs) {
    const output = outputs[0][0];
    if (this.tail) this.fade(output);
    else if (!this.filling || this.ready()) this.fill(output);
    if (currentTime >= this.reportAt) {
      this.reportAt = currentTime + REPORT_S;
      this.port.postMessage({ position: this.played });
    }
    return true;
  }

  // A waveform that is cut off clicks.
  fade(output) {
    const count = Math.min(output.length, this.tail.length);
    for (let i = 0; i < count; i++) output[i] = this.tail[i] * (1 - (i + 1) / count);
    this.tail = null;
  }

  ready() {
    const waiting = this.received - this.played;
    if (waiting >= this.buffer * sampleRate || (this.ended && waiting > 0)) {
      this.filling = false;
      this.port.postMessage({ sounding: this.played });
    }
    return !this.filling;
  }

  fill(output) {
    let at = 0;
    while (at < output.length && this.chunks.length) {
      const chunk = this.chunks[0];
      const count = Math.min(output.length - at, chunk.length - this.offset);
      output.set(chunk.subarray(this.offset, this.offset + count), at);
      at += count;
      this.offset += count;
      this.played += count;
      if (this.offset === chunk.length) {
        this.chunks.shift();
        this.offset = 0;
      }
    }
    if (at < output.length) {
      this.filling = true;
      if (!this.ended) this.buffer = Math.min(2 * this.buffer, MAX_BUFFER_S);
      this.port.postMessage({ position: this.played });
      this.port.postMessage(this.ended ? { drained: true } : { waiting: true });
    }
  }
}

registerProcessor("player", Player);

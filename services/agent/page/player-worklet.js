// Plays samples as they arrive. A small buffer is filled before the first sound, and again whenever
// the samples run out, so that audio that comes in bursts sounds even.
//
// in:  {samples: Float32Array}  follows what came before
//      {restart: position}      forget everything from this position on, it comes again
//      {end: true}              nothing more comes for now: play what is there
//      {clear: true}            silence, at once; positions begin at 0 again
// out: {position}               samples played, about 20 times a second
//      {waiting: true}          ran out of samples while more were to come
//      {drained: true}          all is played

const BUFFER_S = 0.08;
const REPORT_S = 0.05;

class Player extends AudioWorkletProcessor {
  constructor() {
    super();
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
    } else if (message.clear) {
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
    if (!this.filling || this.ready()) this.fill(output);
    if (currentTime >= this.reportAt) {
      this.reportAt = currentTime + REPORT_S;
      this.port.postMessage({ position: this.played });
    }
    return true;
  }

  ready() {
    const waiting = this.received - this.played;
    if (waiting >= BUFFER_S * sampleRate || (this.ended && waiting > 0)) this.filling = false;
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
      this.port.postMessage(this.ended ? { drained: true } : { waiting: true });
      this.port.postMessage({ position: this.played });
    }
  }
}

registerProcessor("player", Player);

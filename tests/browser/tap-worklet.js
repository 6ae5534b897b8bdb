// Tells the page of every block of samples that is not silence.

class Tap extends AudioWorkletProcessor {
  process([[block]]) {
    if (block?.some((sample) => sample !== 0)) {
      const samples = Int16Array.from(block, (sample) => Math.round(sample * 32768));
      this.port.postMessage({ frame: currentFrame, samples });
    }
    return true;
  }
}

registerProcessor("tap", Tap);

// The page's side of the sound: PCM in, what has been heard out.

export class Player {
  // Called back: onposition(samples played), onwaiting(), ondrained().
  constructor() {
    this.onposition = this.onwaiting = this.ondrained = () => {};
    this.received = 0;
    this.position = 0;
    this.rate = 0;
    this.context = null;
    this.node = null; // while null, messages wait in `early`
    this.early = [];
  }

  // Must first run in the handler of a click or a key: browsers keep pages silent until then.
  async start(rate) {
    this.clear();
    if (this.rate !== rate) {
      this.rate = rate;
      this.node = null;
      await this.context?.close();
      this.context = new AudioContext({ sampleRate: rate });
      await this.context.audioWorklet.addModule("player-worklet.js");
      this.node = new AudioWorkletNode(this.context, "player", {
        numberOfInputs: 0,
        outputChannelCount: [1],
      });
      this.node.port.onmessage = ({ data }) => this.#hear(data);
      this.node.connect(this.context.destination);
      for (const message of this.early.splice(0)) this.#post(message);
    }
    await this.context.resume();
  }

  // s16le samples as an ArrayBuffer.
  append(buffer) {
    const pcm = new DataView(buffer);
    const samples = new Float32Array(buffer.byteLength / 2);
    for (let i = 0; i < samples.length; i++) samples[i] = pcm.getInt16(2 * i, true) / 32768;
    this.received += samples.length;
    this.#post({ samples });
  }

  restart(position) {
    this.received = position;
    this.#post({ restart: position });
  }

  end() {
    this.#post({ end: true });
  }

  clear() {
    this.received = this.position = 0;
    this.early.length = 0;
    if (this.node) this.#post({ clear: true });
  }

  #post(message) {
    if (!this.node) this.early.push(message);
    else this.node.port.postMessage(message, message.samples ? [message.samples.buffer] : []);
  }

  #hear(message) {
    if (message.position !== undefined) {
      this.position = message.position;
      this.onposition(message.position);
    } else if (message.waiting) {
      this.onwaiting();
    } else if (message.drained) {
      this.ondrained();
    }
  }
}

// The page's side of the sound: PCM in, what has been heard out.

const ANSWER_MS = 200; // a worklet that answers later than this is not running

export class Player {
  // Called back: onposition(samples played), onsounding(), onwaiting(), ondrained().
  constructor() {
    this.onposition = this.onsounding = this.onwaiting = this.ondrained = () => {};
    this.position = 0;
    this.rate = 0;
    this.context = null;
    this.node = null; // while null, messages wait in `early`
    this.early = [];
    this.clears = 0; // what comes before the answer to the last clear tells of an earlier turn
    this.answered = 0;
    this.onclear = null;
  }

  // Must first run in the handler of a click or a key: browsers keep pages silent until then.
  async start(rate) {
    this.#clear();
    if (this.rate !== rate) {
      this.rate = rate;
      this.node = null;
      await this.context?.close();
      this.context = new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
      await this.context.audioWorklet.addModule("player-worklet.js");
      this.node = new AudioWorkletNode(this.context, "player", {
        numberOfInputs: 0,
        outputChannelCount: [1],
      });
      this.node.port.onmessage = ({ data }) => this.#hear(data);
      this.node.connect(this.context.destination);
      this.answered = this.clears;
      for (const message of this.early.splice(0)) this.#post(message);
    }
    await this.context.resume();
  }

  // s16le samples.
  append(bytes) {
    const pcm = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const samples = new Float32Array(bytes.byteLength / 2);
    for (let i = 0; i < samples.length; i++) samples[i] = pcm.getInt16(2 * i, true) / 32768;
    this.#post({ samples });
  }

  restart(position) {
    this.#post({ restart: position });
  }

  end() {
    this.#post({ end: true });
  }

  // Silence at once. Tells the last sample that was heard.
  async silence() {
    const known = this.position;
    const answer = new Promise((resolve) => {
      this.onclear = resolve;
      setTimeout(resolve, ANSWER_MS, known);
    });
    this.#clear();
    return answer;
  }

  #clear() {
    this.position = 0;
    this.early.length = 0;
    if (this.node) this.#post({ clear: ++this.clears });
  }

  #post(message) {
    if (!this.node) this.early.push(message);
    else this.node.port.postMessage(message, message.samples ? [message.samples.buffer] : []);
  }

  #hear(message) {
    if (message.cleared !== undefined) {
      this.answered = message.cleared;
      if (this.answered < this.clears) return;
      this.onclear?.(message.position);
      this.onclear = null;
    } else if (this.answered < this.clears) {
      return;
    } else if (message.position !== undefined) {
      this.position = message.position;
      this.onposition(message.position);
    } else if (message.sounding !== undefined) {
      this.onsounding();
    } else if (message.waiting) {
      this.onwaiting();
    } else if (message.drained) {
      this.ondrained();
    }
  }
}

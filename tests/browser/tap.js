// Beside the page's own output: every sample that it hands to the loudspeaker, and when a person
// clicked. Runs before the page's scripts.

window.heard = { blocks: [], textAtFirstSound: null, clickedAt: null };

const addModule = AudioWorklet.prototype.addModule;
AudioWorklet.prototype.addModule = async function (url) {
  await addModule.call(this, "/tap-worklet.js");
  await addModule.call(this, url);
};

const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (to, ...rest) {
  if (to === this.context.destination) {
    const tap = new AudioWorkletNode(this.context, "tap", { numberOfOutputs: 0 });
    connect.call(this, tap);
    tap.port.onmessage = ({ data }) => {
      if (!window.heard.blocks.length) {
        window.heard.textAtFirstSound = document.getElementById("reply").textContent;
      }
      window.heard.blocks.push(data);
    };
    addEventListener("click", ({ target }) => {
      if (target.id === "stop") window.heard.clickedAt = this.context.currentTime;
    }, true);
  }
  return connect.call(this, to, ...rest);
};

// The blocks with sound in them: their first frames, and their samples in base64.
window.takeHeard = () => {
  const { blocks, textAtFirstSound, clickedAt } = window.heard;
  const samples = new Int16Array(blocks.length * 128);
  blocks.forEach((block, i) => samples.set(block.samples, i * 128));
  const bytes = new Uint8Array(samples.buffer);
  let binary = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return { frames: blocks.map(({ frame }) => frame), pcm: btoa(binary), textAtFirstSound, clickedAt };
};

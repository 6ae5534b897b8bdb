// The reply's text: it grows token by token, and the word that is being heard is marked.

export class Transcript {
  constructor(element) {
    this.element = element;
    this.clear();
  }

  clear() {
    this.shown = 0; // characters of the reply that stand in `element` before the tail
    this.words = []; // elements, in order
    this.firsts = new Map(); // number of a segment → number of its first word
    this.now = -1;
    this.tail = document.createTextNode("");
    this.element.replaceChildren(this.tail);
  }

  // The reply has more text.
  grow(reply) {
    this.tail.data = textOf(reply, this.shown);
  }

  // A segment begins to come: from here on its words can be marked.
  add(reply, segment) {
    const sentence = document.createElement("span");
    sentence.className = "sentence";
    this.firsts.set(segment.n, this.words.length);
    const characters = [...segment.text];
    let at = 0;
    for (const { start, end } of segment.words) {
      const span = document.createElement("span");
      span.className = "word";
      span.textContent = characters.slice(start, end).join("");
      sentence.append(characters.slice(at, start).join(""), span);
      this.words.push(span);
      at = end;
    }
    sentence.append(characters.slice(at).join(""));
    this.tail.before(textOf(reply, this.shown, segment.start), sentence);
    this.shown = Math.max(this.shown, segment.end);
    this.grow(reply);
  }

  // Word `word` of segment `n` is being heard.
  mark(n, word) {
    const first = this.firsts.get(n);
    if (first === undefined) return;
    const next = Math.min(first + word, this.words.length - 1);
    if (next === this.now) return;
    const from = Math.min(this.now, next);
    for (let i = Math.max(0, from); i <= Math.max(this.now, next); i++) {
      this.words[i].className = i < next ? "word heard" : i === next ? "word now" : "word";
    }
    this.now = next;
  }

  // Nothing sounds any more.
  rest() {
    const last = this.words[this.now];
    if (last) last.className = "word heard";
  }

  // It was cut off in the word that is marked, or behind it if that was over.
  cut(over) {
    const last = this.words[this.now];
    if (last) last.className = over ? "word heard" : "word";
    const mark = document.createElement("span");
    mark.className = "mark";
    mark.textContent = "interrupted";
    if (!last) this.element.prepend(mark, " ");
    else if (over) last.after(" ", mark);
    else last.before(mark, " ");
  }
}

const textOf = (reply, start, end) => reply.characters.slice(start, end).join("");

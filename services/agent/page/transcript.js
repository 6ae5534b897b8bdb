// The reply's text: it grows token by token, and the sentence that is being heard is marked.

export class Transcript {
  constructor(element) {
    this.element = element;
    this.clear();
  }

  clear() {
    this.characters = []; // positions count characters, not UTF-16 units
    this.shown = 0; // characters that stand in `element` before the tail
    this.segments = [];
    this.tail = document.createTextNode("");
    this.element.replaceChildren(this.tail);
  }

  append(text) {
    this.characters.push(...text);
    this.tail.data = this.#slice(this.shown);
  }

  // A sentence begins to sound at `position` (samples from the turn's start).
  add(segment, position) {
    const span = document.createElement("span");
    span.textContent = this.#slice(segment.start, segment.end) || segment.text;
    this.tail.before(this.#slice(this.shown, segment.start), span);
    this.shown = Math.max(this.shown, segment.end);
    this.tail.data = this.#slice(this.shown);
    this.segments.push({ n: segment.n, position, span });
  }

  // Where a sentence began to sound.
  positionOf(n) {
    return this.segments.find((segment) => segment.n === n)?.position;
  }

  // The sentence that sounds at `position`: {n, position}, undefined before the first.
  at(position) {
    return this.segments.findLast((segment) => segment.position <= position);
  }

  mark(segment) {
    for (const { span } of this.segments) {
      if (span === segment?.span) span.setAttribute("aria-current", "true");
      else span.removeAttribute("aria-current");
    }
  }

  #slice(start, end) {
    return this.characters.slice(start, end).join("");
  }
}

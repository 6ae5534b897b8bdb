// Which words a text has, and when each is heard. Places count characters, not UTF-16 units.

const GUESSED_CHARS_PER_S = 15;
const TOGETHER = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u; // no spaces between words
const SOUNDS = /[\p{L}\p{N}]/u;

// [{start, end}]: runs of characters between spaces; of scripts without spaces, their words.
export function wordsOf(text) {
  const found = [];
  let at = 0;
  for (const run of text.split(/(\s+)/u)) {
    const parts = TOGETHER.test(run) ? segmented(run) : [run];
    for (const part of parts) {
      const length = [...part].length;
      if (part.trim()) found.push({ start: at, end: at + length });
      at += length;
    }
  }
  return found;
}

function segmented(run) {
  if (!Intl.Segmenter) return [run];
  const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  const parts = [];
  for (const { segment, isWordLike } of segmenter.segment(run)) {
    if (isWordLike || !parts.length) parts.push(segment);
    else parts[parts.length - 1] += segment; // punctuation stays with its word
  }
  return parts;
}

// When each of `words` begins and is over, in seconds from the segment's start.
// `told` are the voice's own times, [start, end, from, to], in the text as it is spoken: `spoken`, if
// that is known. It may lack markup that the written text has. Where the two cannot be matched, or
// nothing is told (yet), words are placed by their length in `seconds`, the segment's duration if it
// is known. Returns {begins: [seconds], ends: [seconds], exact: whether they are the voice's own}.
export function timesOf(text, words, told, seconds, spoken) {
  const characters = [...text];
  const other = spoken !== undefined && spoken !== text;
  const placed = (other && located(characters, told, [...spoken])) || told;
  const exact = told.length ? matched(characters, words, placed) : null;
  if (exact) return { ...exact, exact: true };
  const length = [...text].length || 1;
  const lasts = seconds ?? length / GUESSED_CHARS_PER_S;
  const at = (character) => (character / length) * lasts;
  const begins = words.map(({ start }) => at(start));
  return { begins, ends: words.map(({ end }) => at(end)), exact: false };
}

// The same times with places in the written text: each spoken word where it stands next, whole.
// Null if one stands nowhere.
function located(characters, told, spoken) {
  let at = 0;
  const places = [];
  for (const [start, end, from, to] of told) {
    const word = spoken.slice(start, end);
    const bounded = (i) => !sounds(characters[i - 1] ?? "") && !sounds(characters[i + word.length] ?? "");
    const here = (i) => bounded(i) && word.every((character, k) => characters[i + k] === character);
    while (at < characters.length && !here(at)) at++;
    if (!word.length || at >= characters.length) return null;
    places.push([at, at + word.length, from, to]);
    at += word.length;
  }
  return places;
}

function matched(characters, words, told) {
  const audible = words.filter(({ start, end }) => characters.slice(start, end).some(sounds));
  const inPlace = told.every(([start, end]) => {
    const word = characters.slice(start, end);
    if (end > characters.length || !word.length || word.some(isSpace)) return false;
    return word.some(sounds) || words.some((one) => one.start === start && one.end === end);
  });
  if (!inPlace && audible.length !== told.length) return null;
  const toldOf = inPlace
    ? (word) => told.filter(([start, end]) => start < word.end && word.start < end)
    : (word) => told.slice(audible.indexOf(word)).slice(0, audible.includes(word) ? 1 : 0);
  const begins = [];
  const ends = [];
  for (const word of words) {
    const found = toldOf(word); // none: a dash is over with the word before it
    begins.push(found.length ? found[0][2] : (ends.at(-1) ?? 0));
    ends.push(found.length ? found.at(-1)[3] : begins.at(-1));
  }
  return { begins, ends };
}

const sounds = (character) => SOUNDS.test(character);
const isSpace = (character) => /\s/u.test(character);

// The voices as a person chooses among them: by language, with their own names.

// Options in groups, for a list of {id, language}.
export function optionsOf(voices) {
  const names = new Intl.DisplayNames("en", { type: "language" });
  const groups = new Map();
  for (const { id, language } of voices) {
    if (!groups.has(language)) {
      const group = document.createElement("optgroup");
      group.label = languageOf(names, language);
      groups.set(language, group);
    }
    groups.get(language).append(new Option(nameOf(id), id));
  }
  return [...groups.values()];
}

function languageOf(names, language) {
  try {
    return names.of(language) ?? language;
  } catch {
    return language;
  }
}

// "af_heart": the first letter is the language, the second f or m.
function nameOf(id) {
  const [, sex, name] = /^[a-z]([fm])_(\w+)$/.exec(id) ?? [];
  if (!name) return id;
  return `${name[0].toUpperCase()}${name.slice(1)} (${sex === "f" ? "female" : "male"})`;
}

// Words of the glossary (GLOSSARY, glossary.json) are explained where they first stand in a section: on pointing, a tap or Tab; Esc ends it.
const WORDS = new RegExp(`(?<![\\w.@/-])(?:${Object.keys(GLOSSARY).sort((a, b) => b.length - a.length)
  .map(word => word.length > 1 ? word.replace("+", "\\+") : `${word}(?= \\d)`).join("|")})(?![\\w@]|-\\w)`, "g");
const UNEXPLAINED = "h1, h2, h3, h4, a, abbr, button, code, kbd, label, noscript, option, pre, select, summary, svg, .chart, .legend";

function explainWords(part) {
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT), texts = [], said = new Set();
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(UNEXPLAINED)) texts.push(walker.currentNode);
  for (const node of texts) {
    let rest = node, done = 0;
    for (const {0: word, index} of [...node.data.matchAll(WORDS)]) {
      if (said.has(word)) continue;
      said.add(word);
      const at = rest.splitText(index - done);
      rest = at.splitText(word.length);
      done = index + word.length;
      at.replaceWith(make("abbr", {tabindex: 0, "data-word": word}, word));
    }
  }
}

// Beside one word, or beside all that stand in the same line of text where a finger may have missed the neighbour.
function showMeaning(abbr, words) {
  hideMeaning();
  const lines = [...new Set(words.map(each => each.dataset.word))].map(word => make("div", {}, make("strong", {}, word), `: ${GLOSSARY[word]}.`.replace("?.", "?")));
  const told = make("div", {id: "meaning", role: "tooltip"}, ...lines), {left, top, bottom} = abbr.getBoundingClientRect();
  document.body.append(told);
  abbr.setAttribute("aria-describedby", "meaning");
  const below = bottom + 6 + told.offsetHeight < innerHeight;
  told.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - told.offsetWidth - 8))}px`;
  told.style.top = `${below ? bottom + 6 : Math.max(8, top - 6 - told.offsetHeight)}px`;
}

function hideMeaning() {
  document.getElementById("meaning")?.remove();
  document.querySelector("abbr[aria-describedby]")?.removeAttribute("aria-describedby");
}

const explained = event => event.target.closest?.("abbr[data-word]");
for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, event => { const abbr = explained(event); if (abbr) showMeaning(abbr, [abbr]); });
for (const kind of ["mouseout", "focusout"]) document.addEventListener(kind, event => { if (explained(event)) hideMeaning(); });
document.addEventListener("click", event => {
  const abbr = explained(event);
  if (abbr) showMeaning(abbr, [...abbr.parentElement.querySelectorAll("abbr[data-word]")]);
});
document.addEventListener("keydown", event => { if (event.key === "Escape") hideMeaning(); });
document.addEventListener("scroll", hideMeaning, {capture: true, passive: true});

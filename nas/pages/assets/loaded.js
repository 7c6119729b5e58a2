// The last of every page's scripts: what they draw can be used.
for (const part of document.querySelectorAll("header, main > section, main > details")) explainWords(part);
document.documentElement.dataset.loaded = "yes";
performance.mark("interactive");

// How one of many series is marked: a colour, a marker and a dash that together no other of the first sixty-four has.
const MARKERS = ["circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "plus", "cross"];
const DASHES = ["solid", "dashed", "dotted", "dashdot", [8, 3], [2, 6], [12, 4, 2, 4], [1, 3]];

function series(i) {
  const shifted = (i + Math.floor(i / 8)) % 8;
  const colour = `var(--series${i % 8})`;
  return {colour: getComputedStyle(document.documentElement).getPropertyValue(`--series${i % 8}`).trim(), css: colour, marker: MARKERS[shifted], dash: DASHES[shifted]};
}

// Run as the body of a function with the least ratio: how many texts the page shows, and those below it.
const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return text.startsWith("rgb") ? [...n.slice(0, 3), n[3] ?? 1] : [0, 0, 0, 0]; };
const over = (top, under) => [0, 1, 2].map((k) => top[k] * top[3] + under[k] * (1 - top[3])).concat(1);
const channel = (v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const ground = (e) => {
  const layers = [];
  for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((under, top) => over(top, under), matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18, 1] : [255, 255, 255, 1]);
};
const worst = new Map();
let texts = 0;
const note = (e, ink, paper, text) => {
  const [a, b] = [light(over(ink, paper)), light(paper)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05), key = `${e.tagName}.${e.getAttribute("class") || ""}`;
  texts++;
  if (!worst.has(key) || worst.get(key)[0] > ratio) worst.set(key, [ratio, text.slice(0, 40), ink.join(), paper.join()]);
};
for (const d of document.querySelectorAll("details")) d.open = true;
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const text = walk.currentNode.data.trim(), e = walk.currentNode.parentElement, style = getComputedStyle(e);
  if (!text || e.closest("script, style, .vh, .skip, noscript, title") || !e.getClientRects().length) continue;
  for (let up = e; up; up = up.parentElement) if (getComputedStyle(up).opacity !== "1") note(up, [0, 0, 0, 1], [0, 0, 0, 1], "see-through: " + text);
  if (e instanceof SVGElement) {
    const box = e.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    let paper = ground(e.closest("svg").parentElement);
    for (const rect of e.closest("svg").querySelectorAll("rect")) {
      const r = rect.getBoundingClientRect(), fill = getComputedStyle(rect).fill;
      if (r.x <= x && x <= r.right && r.y <= y && y <= r.bottom && fill !== "none") paper = over(parse(fill), paper);
    }
    note(e, parse(style.fill), paper, text);
  } else note(e, parse(style.color), ground(e), text);
}
for (const box of document.querySelectorAll("input[placeholder]")) note(box, parse(getComputedStyle(box, "::placeholder").color), ground(box), box.placeholder);
return [texts, [...worst].filter(([, [ratio]]) => ratio < arguments[0]).map(([key, found]) => [key, ...found])];

// Measures every frame of the host page once all are loaded.
"use strict";

const SLACK = 1; // pixels by which the boxes of two texts may touch

function luminance(color) {
  const [red, green, blue, alpha = 1] = (color.match(/[\d.]+/g) || [255, 255, 255]).map(Number);
  if (alpha === 0) return 1;
  const part = (value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
}

function contrast(first, second) {
  return (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
}

function isShown(box) {
  return box.width > 0 && box.height > 0;
}

function look(frame) {
  const view = frame.contentWindow;
  const page = frame.contentDocument;
  const style = view.getComputedStyle(page.body);
  const paper = luminance(style.backgroundColor);
  const found = {
    name: frame.title, charts: 0, texts: 0, overlaps: [], outside: [], faint: [],
    scrollWidth: page.documentElement.scrollWidth, innerWidth: view.innerWidth,
    dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
    paper: paper, ink: luminance(style.color),
  };
  for (const drawing of page.querySelectorAll("svg[role=img]")) {
    const edge = drawing.getBoundingClientRect();
    if (!isShown(edge)) continue;
    found.charts += 1;
    const texts = [...drawing.querySelectorAll("text")]
      .map((node) => ({ node: node, text: node.textContent, box: node.getBoundingClientRect() }))
      .filter((text) => isShown(text.box));
    found.texts += texts.length;
    texts.forEach((one, index) => {
      const box = one.box;
      if (box.left < edge.left - SLACK || box.right > edge.right + SLACK
        || box.top < edge.top - SLACK || box.bottom > edge.bottom + SLACK) {
        found.outside.push(one.text);
      }
      if (contrast(luminance(view.getComputedStyle(one.node).fill), paper) < 4.5) {
        found.faint.push(one.text);
      }
      for (const other of texts.slice(0, index)) {
        if (box.left < other.box.right - SLACK && other.box.left < box.right - SLACK
          && box.top < other.box.bottom - SLACK && other.box.top < box.bottom - SLACK) {
          found.overlaps.push(`'${other.text}' and '${one.text}'`);
        }
      }
    });
  }
  return found;
}

addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(look);
  // Printed as part of a document, so without what documents escape.
  const text = JSON.stringify(found).replace(/[<>&]/g, (character) =>
    "\\u00" + character.charCodeAt(0).toString(16));
  document.getElementById("found").textContent = text;
});

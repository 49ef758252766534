// A figure of the page as a picture of its own: SVG whose text is text, on white, whatever the theme of the page.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "vector-effect", "opacity", "font-size", "text-anchor"];
const MARGIN = 12;

function svg(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** The parts of a figure that no fold hides. */
function visible(figure, selector) {
  return [...figure.querySelectorAll(selector)].filter((part) => part.checkVisibility());
}

/** The lines in which a text stands on the page: words, left and right edge, baseline. */
function linesOf(node, ascent) {
  const range = document.createRange();
  const lines = [];
  for (const { 0: sign, index } of node.data.matchAll(/\s+|\S/gu)) {
    range.setStart(node, index);
    range.setEnd(node, index + sign.length);
    const { left, right, top, width } = range.getBoundingClientRect();
    const line = lines.at(-1);
    if (!sign.trim()) {
      if (line) line.text += " ";
    } else if (line && Math.abs(line.top - top) < 2) {
      line.text += sign;
      line.left = Math.min(line.left, left);
      line.right = Math.max(line.right, right);
    } else if (width) {
      lines.push({ text: sign, left, right, top, baseline: top + ascent });
    }
  }
  return lines;
}

/** The texts of a figure outside its drawings, each line of the page one `text`. */
function* textsOf(figure) {
  const measure = document.createElement("canvas").getContext("2d");
  const walker = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const around = walker.currentNode.parentElement;
    if (around.closest("svg, .actions, .heard") || !around.checkVisibility()) continue;
    const look = getComputedStyle(around);
    measure.font = look.font;
    const rightmost = ["right", "end"].includes(look.textAlign);
    for (const line of linesOf(walker.currentNode, measure.measureText("x").fontBoundingBoxAscent)) {
      const made = svg("text", {
        x: rightmost ? line.right : line.left, y: line.baseline, fill: look.color,
        "font-size": look.fontSize, "font-weight": look.fontWeight, "text-anchor": rightmost ? "end" : "start",
      });
      made.textContent = line.text.trimEnd();
      yield made;
    }
  }
}

/** The rules under the cells of a figure's tables. */
function* rulesOf(figure) {
  for (const cell of visible(figure, "th, td")) {
    const look = getComputedStyle(cell);
    const { left, right, bottom } = cell.getBoundingClientRect();
    if (parseFloat(look.borderBottomWidth)) yield svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, stroke: look.borderBottomColor });
  }
}

/** The drawings of a figure, with the look that the style of the page gives them. */
function* drawingsOf(figure) {
  for (const drawing of visible(figure, ":not(svg) > svg")) {
    const { left, top, width, height } = drawing.getBoundingClientRect();
    const copy = drawing.cloneNode(true);
    const copies = copy.querySelectorAll("*");
    drawing.querySelectorAll("*").forEach((part, number) => {
      const look = getComputedStyle(part);
      for (const name of DRAWN) copies[number].setAttribute(name, look.getPropertyValue(name));
      copies[number].removeAttribute("class");
    });
    copy.removeAttribute("class");
    for (const [key, value] of Object.entries({ x: left, y: top, width, height, overflow: "visible" })) copy.setAttribute(key, value);
    yield copy;
  }
}

/** Where a figure stands, with what of its tables one would have to scroll to. */
function boxOf(figure) {
  const boxes = [figure, ...visible(figure, "table")].map((part) => part.getBoundingClientRect());
  const x = Math.min(...boxes.map((box) => box.left)) - MARGIN, y = boxes[0].top - MARGIN;
  return { x, y, width: Math.max(...boxes.map((box) => box.right)) + MARGIN - x, height: boxes[0].bottom + MARGIN - y };
}

/** A figure as it stands on the page, as the text of an SVG file. */
function svgOf(figure) {
  root.style.colorScheme = "light";
  const { x, y, width, height } = boxOf(figure);
  const made = svg("svg", { viewBox: `${x} ${y} ${width} ${height}`, width, height, "font-family": getComputedStyle(figure).fontFamily });
  const title = svg("title", {});
  title.textContent = figure.querySelector("figcaption").textContent;
  made.append(title, svg("rect", { x, y, width, height, fill: "#fff" }), ...rulesOf(figure), ...drawingsOf(figure), ...textsOf(figure));
  root.style.colorScheme = "";
  return new XMLSerializer().serializeToString(made);
}

/** The buttons of a figure: its numbers for a spreadsheet, the figure for a paper. */
function figureButtons(figure) {
  const save = h("button", { type: "button" }, "Save");
  save.addEventListener("click", () => saveFile(svgOf(figure), "image/svg+xml", `${fileName(figure.querySelector("figcaption").textContent) || "figure"}.svg`));
  return h("div", { class: "actions" }, figure.querySelector("table") && copyButton(figure), save);
}

// Runs beside each other: a row for every sample with its picture, and a column for what each run answered.

const GRID_ROWS = 40;
const GRID_TEXT = 700;
const gridState = { q: "", show: "", mark: "" };
const gridInputs = {};
let gridSeen = [], gridDrawn = 0, gridBody, gridCount, gridEnd, gridDrawing = 0;

function gridFits(row) {
  const worths = row.worths.map((worth) => worth || 0);
  return (!gridState.mark || row.marks.includes(gridState.mark))
    && (gridState.show !== "differ" || row.answers.some((each) => each !== row.answers[0]))
    && (gridState.show !== "apart" || worths.some((each) => each !== worths[0]))
    && (gridState.show !== "wrong" || row.worths.some((worth) => worth === null || (index.share && (index.lower ? worth > 0 : worth < 1))))
    && says(row, gridState.q);
}

function gridMark(row, place) {
  const worth = row.worths[place];
  if (row.outcomes[place] !== "answered") return ["no-answer", row.outcomes[place]];
  if (worth === null) return index.scored ? ["unscored", "not scored"] : ["answered", "answered"];
  if (!index.share) return ["scored", worth.toFixed(3)];
  const right = index.lower ? 1 - worth : worth;
  return right >= 1 ? ["right", "100 %"] : right <= 0 ? ["wrong", "0 %"] : ["partly", `${(100 * worth).toFixed(1)} %`];
}

function gridAnswer(row, side, place) {
  const text = side.reason || answerWords(side) || row.said[place] || "";
  return text.length <= GRID_TEXT ? text : `${text.slice(0, GRID_TEXT - 1)}…`;
}

/** Opens a sample in the first pair that the run is a part of. */
function gridOpen(row, place) {
  const number = index.runs.findIndex(({ a, b }) => (place ? a === 0 && b === place : a === 0));
  Object.assign(state, { run: String(Math.max(number, 0)), sample: row.id, epoch: row.epoch, automatic: false, ...unchosen() });
  remember();
  recall();
}

/** A text with the words marked that the first one lacks; unmarked where the two have little in common. */
function ownWords(first, text) {
  const made = diffElement(first, text);
  return made.classList.contains("whole-texts") ? text : [...made.children].filter((each) => each.localName !== "del");
}

async function gridRow(row) {
  const { samples } = await block(`d-0-${Math.floor(row.at / index.block)}`);
  const sides = samples[row.at % index.block].map((side) => side.detail);
  const texts = sides.map((side, place) => gridAnswer(row, side, place));
  const cells = sides.map((side, place) => {
    const [look, word] = gridMark(row, place);
    const label = `${index.letters[place]}, ${row.id}: ${word}`;
    return h("td", { class: row.answers[place] === row.answers[0] ? null : "other" },
      h("button", { type: "button", class: `mark m-${look}`, "aria-label": `Open ${label}`, on: { click: () => gridOpen(row, place) } }, word),
      h("div", { class: "answer" }, row.answers[place] === row.answers[0] ? texts[place] : ownWords(texts[0], texts[place])));
  });
  const picture = pictureButton(thumbnail(row, { loading: "lazy", alt: `The picture of ${row.id}` }));
  return h("tr", {}, h("th", { scope: "row" }, picture, h("bdi", {}, row.title || row.id), row.epoch ? h("span", { class: "soft" }, ` · epoch ${row.epoch}`) : null, row.about ? h("div", { class: "asked" }, h("bdi", {}, row.about)) : null), cells);
}

/** Draws the next rows when the end of those that are there comes into sight. */
async function gridMore() {
  const drawing = gridDrawing;
  const from = gridDrawn;
  gridDrawn = Math.min(gridDrawn + GRID_ROWS, gridSeen.length);
  const rows = await Promise.all(gridSeen.slice(from, gridDrawn).map(gridRow));
  if (drawing !== gridDrawing) return;
  gridBody.append(...rows);
  gridBody.closest("table").removeAttribute("aria-busy");
  gridEnd.hidden = gridDrawn >= gridSeen.length;
}

function gridApply() {
  if (!ready(gridState.q)) return;
  gridDrawing += 1;
  gridDrawn = 0;
  gridSeen = index.rows.filter(gridFits);
  const total = index.rows.length.toLocaleString("en");
  gridCount.textContent = gridSeen.length === index.rows.length ? `${total} ${index.many}` : `${gridSeen.length.toLocaleString("en")} of ${total}`;
  gridBody.replaceChildren();
  gridBody.closest("table").setAttribute("aria-busy", "true");
  gridMore();
}

function gridAddress() {
  const parts = new URLSearchParams(Object.entries(gridState).filter(([, value]) => value));
  return ["grid", parts.toString().replaceAll("+", "%20")].filter(Boolean).join("&");
}

/** Shows the grid as an address has it. */
function gridRecall(hash) {
  const parts = new URLSearchParams(hash.replace(/^grid&?/, ""));
  for (const name of Object.keys(gridState)) {
    gridState[name] = parts.get(name) || "";
    gridInputs[name].value = gridState[name];
    if (gridInputs[name].selectedIndex < 0) gridInputs[name].value = gridState[name] = "";
  }
  view("grid");
  gridApply();
}

function gridSelect(name, label, options) {
  return h("select", { "aria-label": label, title: label }, options.map(([value, words]) => h("option", { value }, words)));
}

/** Which samples can be shown, in words; where nothing is scored, none is wrong or better. */
function gridShows() {
  const scored = { wrong: "Wrong in one run or more", apart: "Better in one run than in another" };
  return { "": `All ${index.many}`, differ: "Not answered alike", ...(index.scored ? scored : {}) };
}

function startGrid() {
  index.rows.forEach((row, at) => { row.at = at; });
  const counts = new Map();
  for (const row of index.rows) for (const mark of row.marks) counts.set(mark, (counts.get(mark) || 0) + 1);
  const marks = [...counts].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([mark, many]) => [mark, `${mark} (${many.toLocaleString("en")})`]);
  gridInputs.q = h("input", { type: "search", placeholder: "Search", "aria-label": "Search in everything that was said", autocomplete: "off", spellcheck: "false" });
  gridInputs.show = gridSelect("show", `Which ${index.many}`, Object.entries(gridShows()));
  gridInputs.mark = gridSelect("mark", "Label or tag", [["", "Any label"], ...marks]);
  gridInputs.mark.hidden = !marks.length;
  let waiting = 0;
  for (const [name, input] of Object.entries(gridInputs)) {
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { gridState[name] = input.value; setAddress(gridAddress()); gridApply(); }, name === "q" ? 120 : 0);
    });
  }
  gridCount = h("output", { "aria-live": "polite" });
  gridBody = h("tbody", {});
  gridEnd = h("button", { type: "button", class: "more", on: { click: gridMore } }, "Show more");
  const heads = index.names.map((name, place) => h("th", { scope: "col" }, h("span", { class: "letter" }, index.letters[place]), " ", h("bdi", {}, name), h("span", { class: "num soft" }, ` ${index.figures[place]}`)));
  const table = h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, index.many.slice(0, -1)), heads)), gridBody);
  document.getElementById("grid").replaceChildren(
    h("h1", { class: "heard" }, "Grid"),
    h("div", { class: "filters", role: "search" }, Object.values(gridInputs), gridCount),
    h("div", { class: "cells", tabindex: "0", role: "group", "aria-label": "Samples by run" }, table, gridEnd),
  );
  new IntersectionObserver(([end]) => { if (end.isIntersecting && gridBody.children.length) gridMore(); }).observe(gridEnd);
  document.getElementById("to-grid").addEventListener("click", (event) => { event.preventDefault(); setAddress(gridAddress()); recall(); });
}

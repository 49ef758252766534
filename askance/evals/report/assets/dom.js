// What every part of the page is made with. Text becomes text nodes and nothing else; no string is ever read as HTML.

const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu;
const LONGEST = 20000;
const SPOKEN = new Set(["title", "alt", "aria-label", "placeholder"]);

/** Text with what nobody would see written out: controls, marks of direction, halves of pairs. */
function shown(text) {
  const found = document.createDocumentFragment();
  let last = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > last) found.append(text.slice(last, match.index));
    const mark = document.createElement("span");
    mark.className = "unseen";
    mark.textContent = "U+" + match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    found.append(mark);
    last = match.index + match[0].length;
  }
  if (last < text.length) found.append(text.slice(last));
  return found;
}

function plain(text) {
  return text.replace(UNSEEN, (sign) => "U+" + sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
}

/** An element; children are elements, texts, lists of both, or nothing. */
function h(name, settings, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(settings || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, does] of Object.entries(value)) made.addEventListener(event, does);
    else made.setAttribute(key, SPOKEN.has(key) ? plain(String(value)) : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : shown(String(child)));
  }
  return made;
}

function readBlock(id) {
  const found = document.getElementById(id);
  return found ? JSON.parse(found.textContent) : null;
}

/** A block of data that is packed. */
async function unpackBlock(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/** Reads a block of data when it is first asked for, and keeps the last few. */
function keeping(read, most) {
  const kept = new Map();
  return (id) => {
    if (kept.has(id)) return kept.get(id);
    const found = read(id);
    kept.set(id, found);
    if (kept.size > most) kept.delete(kept.keys().next().value);
    return found;
  };
}

/** A text in full; a very long one unfolds. */
function fullText(text, name = "pre", most = LONGEST) {
  const made = h(name, {});
  if (text.length <= most) {
    made.append(shown(text));
    return made;
  }
  made.append(shown(text.slice(0, most)), "…");
  const more = h("button", { type: "button", class: "more" }, `Show all ${text.length.toLocaleString("en")} characters`);
  more.addEventListener("click", () => {
    made.replaceChildren(shown(text));
    more.remove();
  });
  return h("div", {}, made, more);
}

/** What unfolds to content that is made when somebody looks. */
function unfolding(details, make) {
  details.fill = () => {
    if (details.children.length === 1) details.append(make());
  };
  details.addEventListener("toggle", () => { if (details.open) details.fill(); });
  return details;
}

function setOpen(details, open) {
  if (open && details.fill) details.fill();
  details.open = open;
}

/** A picture as a button that shows it as large as the window allows; nothing where there is none. */
function pictureButton(picture) {
  if (!picture) return null;
  return h("button", { type: "button", class: "enlarge", title: "Enlarge", "aria-label": `Enlarge: ${picture.alt}`, on: { click: () => showPicture(picture) } }, picture);
}

function showPicture({ src, alt }) {
  const dialog = document.getElementById("picture");
  dialog.replaceChildren(h("img", { src, alt }), h("button", { type: "button", on: { click: () => dialog.close() } }, "Close"));
  dialog.onclick = () => dialog.close();
  dialog.showModal();
}

function json(value) {
  if (typeof value === "string") return value;
  // A list of numbers, such as boxes or ratings, takes one line.
  return JSON.stringify(value, null, 2).replace(/\[\s*(-?\d[-+.\deE]*(?:,\s*-?\d[-+.\deE]*)*)\s*\]/g, (_, numbers) => `[${numbers.replace(/\s+/g, " ")}]`);
}

function worth(value, share) {
  if (value === null || value === undefined) return "";
  return share ? (100 * value).toFixed(value === 0 || value === 1 ? 0 : 1) : String(Number(value.toFixed(3)));
}

function dashed(word) {
  return word.replaceAll(" ", "-");
}

// --- tables that are copied ---

/** A text that a spreadsheet takes for no formula. */
function noFormula(text) {
  const harmless = /^([+-]?[\d.,]+|%)$/.test(text);
  return !harmless && /^\s*[=+\-@|%\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/.test(text) ? `'${text}` : text;
}

/** A table as lines with tabs between its cells, which a spreadsheet takes apart; a cell of several lines is several. */
function tabbed(table, withHead) {
  const text = (part) => noFormula([...part.childNodes].map((node) => node.textContent).join(" ").replace(/\s+/g, " ").trim());
  const texts = (cell) => (cell.querySelector(":scope > div") ? [...cell.children] : [cell]).map(text);
  const lines = [...table.rows].filter((row) => row.getAttribute("aria-hidden") !== "true" && (withHead || !row.closest("thead")));
  const drawn = (cell) => cell.classList.contains("strip") || (cell.localName === "td" && cell.closest("thead"));
  return lines.map((row) => [...row.cells].filter((cell) => !drawn(cell)).flatMap(texts).join("\t")).join("\n");
}

/** A button that copies a table, or all that a plot is drawn from. */
function copyButton(place) {
  const button = h("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    const texts = [...place.querySelectorAll("table")].map((table, number) => tabbed(table, number === 0));
    try {
      await navigator.clipboard.writeText(texts.join("\n"));
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = "This browser does not let a page copy";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

// --- themes, and tables that sort ---

const root = document.documentElement;
const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  document.getElementById("theme").textContent = theme[0].toUpperCase() + theme.slice(1);
}

function startThemes() {
  let theme = "auto";
  try { theme = localStorage.getItem("askance theme") || "auto"; } catch (error) { theme = "auto"; }
  if (!THEMES.includes(theme)) theme = "auto";
  setTheme(theme);
  document.getElementById("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    setTheme(theme);
    try { localStorage.setItem("askance theme", theme); } catch (error) { return; }
  });
}

function keyOf(row, place) {
  const cell = row.cells[place];
  const number = cell.dataset.sort;
  if (number === undefined) return cell.textContent.toLowerCase();
  return number === "" ? -Infinity : Number(number);
}

function startSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = h("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending" && head.classList.contains("num")
        ? true : head.getAttribute("aria-sort") === "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, place), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}

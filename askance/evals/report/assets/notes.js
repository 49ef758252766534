// What a reader notes of samples: a rating and words for each. Notes are kept in the page's address and saved as a file.

const RATINGS = { good: "Good", bad: "Bad", unsure: "Unsure" };
const MOST_NOTES = 2000;
const LONGEST_NOTE = 4000;
const LONGEST_ADDRESS = 16000;
const noted = new Map();
let writing = 0;

function noteKey(run, id, epoch) {
  return JSON.stringify([Number(run), id, epoch]);
}

function noteOf(row, run = state.run) {
  return noted.get(noteKey(run, row.id, row.epoch)) || null;
}

/** The notes as the address holds them; empty where there are none, or more than an address takes. */
function notesAddress() {
  if (!noted.size) return "";
  const all = [...noted].map(([key, { rating, words }]) => [...JSON.parse(key), rating, words]);
  const written = encodeURIComponent(JSON.stringify(all));
  return written.length <= LONGEST_ADDRESS ? `notes=${written}` : "";
}

/** Takes the notes out of an address: what is left of it. Whatever is no note is passed over. */
function readNotes(hash) {
  const place = hash.search(/(^|&)notes=/);
  if (place < 0) return hash;
  let all = [];
  try { all = JSON.parse(decodeURIComponent(hash.slice(place).replace(/^&?notes=/, ""))); } catch (error) { all = []; }
  for (const each of Array.isArray(all) ? all.slice(0, MOST_NOTES) : []) {
    if (!Array.isArray(each)) continue;
    const [run, id, epoch, rating, words] = each;
    if (!Number.isInteger(run) || typeof id !== "string" || !Number.isInteger(epoch) || typeof words !== "string") continue;
    noted.set(noteKey(run, id, epoch), { rating: Object.hasOwn(RATINGS, rating) ? rating : "", words: words.slice(0, LONGEST_NOTE) });
  }
  return hash.slice(0, place);
}

/** Writes an address with the notes at its end. */
function setAddress(written) {
  const notes = notesAddress();
  history.replaceState(null, "", `#${[written, notes].filter(Boolean).join("&")}`);
}

function setNote(row, change) {
  const key = noteKey(state.run, row.id, row.epoch);
  const next = { rating: "", words: "", ...noted.get(key), ...change };
  if (next.rating || next.words.trim()) noted.set(key, next);
  else noted.delete(key);
  clearTimeout(writing);
  writing = setTimeout(() => { writing = 0; showNotes(); remember(); }, 200);
}

/** What there is of notes beside the filters, and on the rows that are in sight. */
function showNotes() {
  fill(FILTERS.find(({ name }) => name === "note"));
  const button = document.getElementById("save-notes");
  button.hidden = !noted.size;
  button.textContent = `Save notes (${noted.size.toLocaleString("en")})`;
  draw(true);
}

function noteMark(row) {
  const note = noteOf(row);
  return note ? h("span", { class: "soft" }, ` · ✎ ${note.rating ? RATINGS[note.rating].toLowerCase() : "noted"}`) : null;
}

/** Where the reader rates a sample and writes of it. */
function noteElement(row) {
  const note = noteOf(row) || { rating: "", words: "" };
  const buttons = Object.entries(RATINGS).map(([rating, label], place) => h("button", {
    type: "button", "data-rating": rating, "aria-pressed": String(note.rating === rating), title: `Rate it (${place + 1})`, on: { click: () => rate(row, rating) },
  }, label));
  const words = h("textarea", { rows: "2", maxlength: LONGEST_NOTE, "aria-label": "Your note on this sample", placeholder: "A note of your own" });
  words.value = note.words;
  words.addEventListener("input", () => setNote(row, { words: words.value }));
  const hint = "Notes stay in this page's address, which can be kept or sent; “Save notes” writes them all to a CSV file.";
  return h("section", { class: "noting" }, h("h2", {}, "Your note"), h("div", { class: "ratings", role: "group", "aria-label": "Your rating" }, buttons), words, h("p", { class: "note" }, hint));
}

function rate(row, rating) {
  const before = (noteOf(row) || {}).rating;
  const now = before === rating ? "" : rating;
  setNote(row, { rating: now });
  for (const button of detail.querySelectorAll("[data-rating]")) button.setAttribute("aria-pressed", String(button.dataset.rating === now));
}

function rateOpen(place) {
  const row = state.sample === null ? null : rowsOf(state.run).find(isOpen);
  if (row && root.dataset.view === "samples") rate(row, Object.keys(RATINGS)[place]);
}

/** A cell of CSV that no spreadsheet takes for a formula. */
function csvCell(value) {
  return `"${noFormula(String(value)).replaceAll('"', '""')}"`;
}

function saveNotes() {
  const lines = [...noted].map(([key, { rating, words }]) => {
    const [run, id, epoch] = JSON.parse(key);
    return [(index.runs[run] || { name: run }).name, id, epoch, rating, words];
  });
  const text = [["run", "id", "epoch", "rating", "note"], ...lines].map((line) => line.map(csvCell).join(",")).join("\n");
  saveFile(`${text}\n`, "text/csv", `${fileName(document.title) || "notes"}-notes.csv`);
}

/** Asks before the page is left with notes that its address could not hold. */
function startNotes() {
  window.addEventListener("beforeunload", (event) => { if (noted.size && !notesAddress()) event.preventDefault(); });
}

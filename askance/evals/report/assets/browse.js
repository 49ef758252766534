// The samples: a list of which only what is seen is drawn, its filters, its keys, and its place in the address.

const index = readBlock("index");
/** Pixels of a row; a third line says what is asked. */
const ROW = (index.rows || index.runs.flatMap(({ rows }) => rows)).some((row) => row.about) ? 88 : 68;
const NARROW = matchMedia("(max-width: 56rem)");
const block = keeping(readSamples, 6);
const pictures = keeping((id) => readBlock(id), 12);

const FILTERS = [
  { name: "run", label: index.kind === "pair" ? "Which two" : "Run", all: null },
  { name: "result", label: index.kind === "pair" ? "Change" : "Result", all: index.kind === "pair" ? "Any change" : "Any result" },
  { name: "outcome", label: "Outcome", all: "Any outcome" },
  { name: "kind", label: "Kind of error", all: "Any error" },
  { name: "mark", label: "Label or tag", all: "Any label" },
  { name: "blame", label: "Link to blame", all: "Any link" },
  { name: "link", label: "Link that differs", all: "Any link" },
  { name: "tool", label: "Tool that was used", all: "Any tool" },
  { name: "note", label: "Your note", all: "Noted or not" },
];
/** Numbers by which samples are filtered, in the units of the page. */
const RANGES = [
  { name: "score", label: "Score", of: (row) => Number(worth(row.worth, scoresAreShares())), known: (row) => row.worth !== null },
  { name: "seconds", label: "Seconds", of: (row) => row.seconds, known: () => true },
  { name: "dollars", label: "Dollars", of: (row) => row.cost, known: (row) => row.cost !== null },
];
const CHOICES = ["q", ...FILTERS.map(({ name }) => name).filter((name) => name !== "run"), ...RANGES.map(({ name }) => name)];
const ADDRESS = ["sample", "epoch", "run", ...CHOICES, "sort"];
const SORTS = {
  order: ["In order", null],
  worst: ["Worst first", (row) => [row.worth === null ? -1 : row.worth]],
  best: ["Best first", (row) => [row.worth === null ? 1 : -row.worth]],
  slow: ["Slowest first", (row) => [-(row.seconds || 0)]],
  cost: ["Dearest first", (row) => [-(row.cost || 0)]],
  tokens: ["Most tokens", (row) => [-(row.tokens || 0)]],
  tries: ["Most tries", (row) => [-(row.again || 0)]],
};

/** What is shown; `automatic` says that nobody chose the sample that is open. */
const state = { run: "0", ...unchosen(), sort: "order", sample: null, epoch: 0, automatic: false };
let seen = [];
let list, spacer, detail, count, search;
const inputs = {};

function rowsOf(run) {
  return index.runs[Number(run)].rows;
}

/** Whether scores of the run that is shown are shares. */
function scoresAreShares() {
  return index.runs[Number(state.run)].share;
}

/** No search and no filter. */
function unchosen() {
  return Object.fromEntries(CHOICES.map((name) => [name, ""]));
}

function thumbnail(row, settings) {
  if (row.picture === null || row.picture === undefined) return null;
  const source = index.files ? index.files[row.picture] : pictures(`pictures-${Math.floor(row.picture / index.pictureBlock)}`)[row.picture % index.pictureBlock];
  return h("img", { src: source, alt: "", decoding: "async", ...settings });
}

/** Samples by their sides, one for each run that is shown, and the calls of all of them. */
async function readSamples(id) {
  const samples = await unpackBlock(id);
  return { samples, calls: Object.assign({}, ...samples.flat().map((side) => side.calls)) };
}

async function dataOf(row, run) {
  const pair = index.kind === "pair";
  const { samples, calls } = await block(`d-${pair ? 0 : run}-${Math.floor(row.at / index.block)}`);
  const details = samples[row.at % index.block].map((side) => side.detail);
  return { detail: pair ? { sides: details } : details[0], calls };
}

// --- filters ---

/** Everything that was said of each sample of one run, in small letters; made when somebody first searches. */
let haystacks = { of: null, texts: [] };
let gathering = null;

/** What a search goes through: the samples of the run that is shown, or of all runs where they stand side by side. */
function searched() {
  return index.kind === "pair" ? "all" : state.run;
}

/** Whether a search can be answered; if not, what was said is read, and the page is drawn again. */
function ready(q) {
  if (q && haystacks.of !== searched()) gather();
  return !q || haystacks.of === searched();
}

async function gather() {
  const [of, run] = [searched(), state.run];
  if (gathering === of) return;
  gathering = of;
  list.setAttribute("aria-busy", "true");
  const texts = [];
  for (const row of rowsOf(run)) texts.push(haystack(row, await dataOf(row, run)));
  gathering = null;
  list.removeAttribute("aria-busy");
  haystacks = { of, texts };
  if (root.dataset.view === "grid") gridApply();
  else redraw();
}

function says(row, q) {
  return !q || haystacks.texts[row.at].includes(q.toLowerCase());
}

/** The lowest and the highest number of a range, such as `0.5..2`; an end that is left open is infinite. */
function ends(range) {
  const [low, high] = range.split("..");
  return [low ? Number(low) : -Infinity, high ? Number(high) : Infinity];
}

function within(row, { name, of, known }) {
  if (!state[name]) return true;
  const [low, high] = ends(state[name]);
  return known(row) && of(row) >= low && of(row) <= high;
}

function strings(value, into) {
  if (["string", "number"].includes(typeof value)) into.push(String(value));
  else if (Array.isArray(value)) for (const each of value) strings(each, into);
  else if (value && typeof value === "object") for (const each of Object.values(value)) strings(each, into);
}

function haystack(row, data) {
  const parts = [row.id, row.said];
  strings(data.detail, parts);
  for (const key of keysOf(data.detail)) if (data.calls[key]) strings(data.calls[key].reply || data.calls[key].response, parts);
  return parts.join("\n").toLowerCase();
}

function keysOf(detail) {
  if (detail.sides) return detail.sides.flatMap(keysOf);
  return [...(detail.links || []).flatMap((link) => link.calls || []), ...((detail.score || {}).calls || [])];
}

function fits(row) {
  return (!state.result || row.result === state.result || (state.result === "changed" && row.result !== "same"))
    && (!state.outcome || row.outcome === state.outcome)
    && (!state.kind || row.kinds.includes(state.kind))
    && (!state.mark || row.marks.includes(state.mark))
    && (!state.blame || (row.blame || []).includes(state.blame))
    && (!state.link || (row.links || []).includes(state.link))
    && (!state.tool || (row.tools || []).includes(state.tool))
    && (!state.note || notesOn(row).includes(state.note))
    && RANGES.every((range) => within(row, range))
    && says(row, state.q);
}

function notesOn(row) {
  const note = noteOf(row);
  return note ? ["noted", note.rating].filter(Boolean) : [];
}

function valuesOf(name) {
  const counts = new Map();
  const add = (value) => counts.set(value, (counts.get(value) || 0) + 1);
  for (const row of rowsOf(state.run)) {
    if (name === "kind") row.kinds.forEach(add);
    else if (name === "mark") row.marks.forEach(add);
    else if (name === "blame") (row.blame || []).forEach(add);
    else if (name === "link") (row.links || []).forEach(add);
    else if (name === "tool") (row.tools || []).forEach(add);
    else if (name === "note") notesOn(row).forEach(add);
    else add(row[name]);
  }
  return [...counts].sort((a, b) => (a[0] < b[0] ? -1 : 1));
}

function fill(filter) {
  const select = inputs[filter.name];
  if (filter.name === "run") {
    select.replaceChildren(...index.runs.map((run, number) => h("option", { value: number }, run.name)));
    select.hidden = index.runs.length < 2;
  } else {
    const values = valuesOf(filter.name);
    const named = filter.name === "note" ? { noted: "Noted", ...RATINGS } : wordsOf();
    const words = (value) => (filter.name === "tool" ? `used: ${value}` : filter.name === "link" ? `differs: ${linkTitle(value)}` : named[value] || value);
    const extra = filter.name === "result" && index.kind === "pair" ? [h("option", { value: "changed" }, "All that differ")] : [];
    select.replaceChildren(
      h("option", { value: "" }, filter.all), ...extra,
      ...values.map(([value, many]) => h("option", { value }, `${words(value)} (${many.toLocaleString("en")})`)),
    );
    const all = values.length === 1 && values[0][1] === rowsOf(state.run).length;
    select.hidden = (!values.length || all) && !state[filter.name];
  }
  select.value = state[filter.name];
  if (select.selectedIndex < 0) {
    state[filter.name] = "";
    select.value = "";
  }
}

const rangeInputs = {};

/** A menu with a lowest and a highest number for each range. */
function rangeMenu() {
  const lines = RANGES.map(({ name, label }) => {
    const made = ["lowest", "highest"].map((end) => h("input", { type: "number", step: "any", "aria-label": `${label}, ${end}`, placeholder: end }));
    for (const input of made) {
      input.addEventListener("input", () => {
        const [low, high] = made.map((each) => (each.value === "" ? "" : String(each.valueAsNumber)));
        state[name] = low || high ? `${low}..${high}` : "";
        list.scrollTop = 0;
        apply();
        remember();
      });
    }
    rangeInputs[name] = h("div", {}, h("span", {}, label), made);
    return rangeInputs[name];
  });
  const menu = h("details", { class: "ranges" }, h("summary", {}, "Numbers"), h("div", {}, lines));
  document.addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  menu.addEventListener("focusout", (event) => { if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false; });
  return menu;
}

/** Shows the ranges as they are set, without those in which no sample has a number. */
function fillRanges() {
  for (const { name, label, of, known } of RANGES) {
    const line = rangeInputs[name];
    line.hidden = index.kind === "pair" || !rowsOf(state.run).some((row) => known(row) && (name === "score" || of(row) > 0));
    line.firstChild.textContent = name === "score" && scoresAreShares() ? `${label}, %` : label;
    if (line.hidden || !state[name].includes("..") || ends(state[name]).some(Number.isNaN)) state[name] = "";
    ends(state[name]).forEach((end, place) => { line.querySelectorAll("input")[place].value = Number.isFinite(end) ? end : ""; });
  }
  inputs.ranges.hidden = Object.values(rangeInputs).every((line) => line.hidden);
}

function refill() {
  for (const filter of FILTERS) fill(filter);
  fillRanges();
  inputs.sort.value = state.sort;
  search.value = state.q;
}

function apply() {
  for (const filter of FILTERS) inputs[filter.name].classList.toggle("set", filter.name !== "run" && state[filter.name] !== "");
  inputs.ranges.classList.toggle("set", RANGES.some(({ name }) => state[name] !== ""));
  if (!ready(state.q)) return;
  const rows = rowsOf(state.run);
  seen = rows.filter(fits);
  const by = SORTS[state.sort][1];
  if (by) seen = seen.map((row) => [by(row)[0], row]).sort((a, b) => a[0] - b[0] || a[1].at - b[1].at).map(([, row]) => row);
  const total = rows.length.toLocaleString("en");
  count.textContent = seen.length === rows.length ? `${total} ${index.many}` : `${seen.length.toLocaleString("en")} of ${total}`;
  spacer.style.height = `${seen.length * ROW}px`;
  if (state.automatic) openFirst();
  draw(true);
}

// --- the list ---

let drawn = "";

function draw(anew) {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 6);
  const last = Math.min(seen.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 6);
  const now = `${first} ${last}`;
  if (!anew && now === drawn) return;
  drawn = now;
  if (seen.length) spacer.replaceChildren(...seen.slice(first, last).map((row, place) => rowElement(row, first + place)));
  else spacer.replaceChildren(h("p", { class: "empty" }, "No sample fits these filters."));
}

function isOpen(row) {
  return row.id === state.sample && row.epoch === state.epoch;
}

function rowElement(row, place) {
  const made = h("div", {
    class: index.anyPicture ? "row" : "row bare", role: "option", id: `row-${place}`, "aria-selected": isOpen(row), "aria-posinset": place + 1, "aria-setsize": seen.length,
  },
    thumbnail(row, { loading: "lazy" }) || (index.anyPicture ? h("span", { class: "blank" }) : null),
    h("div", {}, h("div", { class: "id" }, h("bdi", {}, row.title || row.id), row.epoch ? h("span", { class: "soft" }, ` · epoch ${row.epoch}`) : null, noteMark(row)), row.about ? h("div", { class: "asked" }, h("bdi", {}, row.about)) : null, h("div", { class: "said" }, h("bdi", {}, row.said))),
    h("div", { class: "worth" }, h("span", { class: `mark m-${dashed(row.result)}` }, word(row)), h("div", { class: "soft" }, index.kind === "pair" ? row.figures : row.result === "partly" || row.result === "scored" ? worth(row.worth, scoresAreShares()) : "")),
  );
  made.style.height = `${ROW}px`;
  made.style.transform = `translateY(${place * ROW}px)`;
  made.addEventListener("click", () => open(row));
  return made;
}

function word(row) {
  if (row.result === "no answer" && row.outcome) return row.outcome;
  return wordsOf()[row.result] || row.result;
}

/** What results are called; for pairs of runs, by the pair. */
function wordsOf() {
  return index.runs[Number(state.run)].words || index.words;
}

function placeOfOpen() {
  return seen.findIndex(isOpen);
}

function step(by) {
  if (!seen.length) return;
  const at = placeOfOpen();
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), seen.length - 1);
  open(seen[next]);
}

function reveal(place) {
  if (place < 0) return;
  const top = place * ROW;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  list.setAttribute("aria-activedescendant", `row-${place}`);
}

function open(row) {
  Object.assign(state, { sample: row.id, epoch: row.epoch, automatic: false });
  document.getElementById("samples").classList.add("opened");
  reveal(placeOfOpen());
  draw(true);
  showDetail(row);
  remember();
}

function close() {
  Object.assign(state, { sample: null, automatic: false });
  document.getElementById("samples").classList.remove("opened");
  showNothing();
  draw(true);
  remember();
  list.focus({ preventScroll: true });
}

function showNothing() {
  detail.removeAttribute("aria-busy");
  detail.replaceChildren(h("p", { class: "empty" }, "Choose a sample: click one, or press j."));
}

let showing = Promise.resolve();

function showDetail(row) {
  showing = drawDetail(row, state.run);
}

async function drawDetail(row, run) {
  detail.setAttribute("aria-busy", "true");
  const data = await dataOf(row, run);
  if (!isOpen(row) || run !== state.run) return; // another one has been opened meanwhile
  detail.removeAttribute("aria-busy");
  const at = placeOfOpen();
  const turn = h("div", { class: "turn" },
    h("span", { class: "soft num" }, at < 0 ? "" : `${(at + 1).toLocaleString("en")} of ${seen.length.toLocaleString("en")}`),
    h("button", { type: "button", title: "Previous (k)", "aria-label": "Previous sample", on: { click: () => step(-1) } }, "↑"),
    h("button", { type: "button", title: "Next (j)", "aria-label": "Next sample", on: { click: () => step(1) } }, "↓"),
  );
  const top = h("div", { class: "bar-top" },
    h("button", { type: "button", class: "back", on: { click: close } }, "← All"),
    h("h1", {}, h("bdi", {}, row.title || row.id)), row.title ? h("code", { class: "soft" }, row.id) : null, row.epoch ? h("span", { class: "soft" }, `epoch ${row.epoch}`) : null,
    h("span", { class: `mark m-${dashed(row.result)}` }, word(row)), turn,
  );
  const content = index.kind === "pair" ? pairDetail(row, data) : sampleDetail(row, data);
  detail.replaceChildren(top, ...content.filter(Boolean));
  detail.scrollTop = 0;
}

// --- the address ---

function remember() {
  const parts = new URLSearchParams();
  for (const name of ADDRESS) {
    if (state.automatic && ["sample", "epoch"].includes(name)) continue;
    const value = String(state[name] ?? "");
    const usual = { run: "0", sort: "order", epoch: "0" }[name] || "";
    if (value !== usual && value !== "") parts.set(name, value);
  }
  const written = parts.toString().replaceAll("+", "%20");
  setAddress(root.dataset.view === "overview" && !written ? "" : written || "samples");
}

function recall() {
  const hash = readNotes(location.hash.slice(1));
  if (noted.size && !location.hash.includes("notes=")) setAddress(hash); // a link of the page does not name them
  if (index.kind === "pair" && /^grid(&|$)/.test(hash)) return gridRecall(hash);
  const known = hash === "samples" || ADDRESS.some((name) => hash.startsWith(`${name}=`));
  view(known ? "samples" : "overview");
  if (!known) return;
  const parts = new URLSearchParams(hash === "samples" ? "" : hash);
  for (const name of CHOICES) state[name] = parts.get(name) || "";
  state.run = index.runs[Number(parts.get("run"))] ? String(Number(parts.get("run"))) : "0";
  state.sort = Object.hasOwn(SORTS, parts.get("sort") || "") ? parts.get("sort") : "order";
  state.epoch = Number(parts.get("epoch")) || 0;
  state.sample = parts.get("sample");
  refill();
  showNotes();
  state.automatic = state.sample === null;
  redraw();
  document.getElementById("samples").classList.toggle("opened", rowsOf(state.run).some(isOpen));
}

/** Draws the list and the sample that is open. */
function redraw() {
  apply();
  if (!state.automatic) showOpen();
}

/** Opens the first sample of the list, if there is one, and room beside the list or no other sample. */
function openFirst() {
  const [first] = seen;
  if (first && isOpen(first)) return;
  state.automatic = !NARROW.matches || rowsOf(state.run).length === 1;
  Object.assign(state, state.automatic && first ? { sample: first.id, epoch: first.epoch } : { sample: null, epoch: 0 });
  if (state.sample === null) showNothing();
  else showDetail(first);
}

/** Shows the sample that is open, if one is. */
function showOpen() {
  const row = rowsOf(state.run).find(isOpen);
  if (!row) return showNothing();
  reveal(placeOfOpen());
  draw(true);
  showDetail(row);
}

function view(name) {
  root.dataset.view = name;
  const here = { overview: "to-overview", samples: "to-samples", grid: "to-grid" };
  for (const [each, id] of Object.entries(here)) {
    const link = document.getElementById(id);
    if (each === name) link.setAttribute("aria-current", "page");
    else if (link) link.removeAttribute("aria-current");
  }
  document.getElementById("samples").hidden = name !== "samples";
  document.getElementById("grid").hidden = name !== "grid";
}

// --- keys ---

const KEYS = [["j / k", "next and previous sample"], ["Enter", "read the sample from its beginning"], ["/", "search"], ["o", "open or close every call"], ["1 / 2 / 3", "rate the sample: good, bad, unsure"], ["Esc", "back to the list, and to the overview"], ["?", "these keys"]];

function help() {
  const dialog = document.getElementById("help");
  if (dialog.open) return dialog.close();
  dialog.replaceChildren(
    h("h2", {}, "Keys"),
    h("dl", {}, KEYS.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)])),
    h("button", { type: "button", on: { click: () => dialog.close() } }, "Close"),
  );
  dialog.showModal();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape") {
    if (inputs.ranges.open) {
      inputs.ranges.open = false;
      inputs.ranges.firstChild.focus();
    } else if (typing) event.target.blur();
    else if (state.sample !== null && root.dataset.view === "samples") close();
    else toOverview();
    return;
  }
  if (typing) return;
  const does = {
    j: () => turn(1), k: () => turn(-1),
    ArrowDown: () => document.activeElement === list && step(1), ArrowUp: () => document.activeElement === list && step(-1),
    Enter: () => state.sample !== null && [list, document.body].includes(document.activeElement) && detail.focus(),
    "/": () => { toSamples(); search.focus(); search.select(); },
    "?": help, o: openAll, 1: () => rateOpen(0), 2: () => rateOpen(1), 3: () => rateOpen(2),
  }[event.key];
  if (!does || (event.key.startsWith("Arrow") && document.activeElement !== list)) return;
  if (event.key !== "Enter") event.preventDefault();
  does();
}

/** The next or previous sample; from another view, the sample that is open. */
function turn(by) {
  const there = root.dataset.view === "samples";
  toSamples();
  if (there || state.sample === null) step(by);
}

function toOverview() {
  setAddress("");
  recall();
}

function toSamples() {
  if (root.dataset.view !== "samples") {
    root.dataset.view = "samples";
    remember();
    recall();
    list.focus({ preventScroll: true });
  }
}

async function openAll() {
  await showing;
  const all = [...detail.querySelectorAll("details")];
  const shut = all.some((each) => !each.open);
  for (const each of all) setOpen(each, shut);
}

// --- the beginning ---

function startSamples() {
  if (index.kind === "pair") {
    index.runs = pairRuns();
    startGrid();
  }
  startNotes();
  for (const run of index.runs) run.rows.forEach((row, at) => { row.at = at; });
  const place = document.getElementById("samples");
  search = h("input", { type: "search", placeholder: "Search (/)", "aria-label": "Search in everything that was said", autocomplete: "off", spellcheck: "false" });
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.q = search.value; list.scrollTop = 0; apply(); remember(); }, 120);
  });
  for (const filter of FILTERS) {
    inputs[filter.name] = h("select", { "aria-label": filter.label, title: filter.label });
    inputs[filter.name].addEventListener("change", (event) => {
      state[filter.name] = event.target.value;
      if (filter.name === "run") refill();
      list.scrollTop = 0;
      apply();
      const row = rowsOf(state.run).find(isOpen);
      if (filter.name === "run" && row) showDetail(row);
      remember();
    });
  }
  inputs.ranges = rangeMenu();
  inputs.sort = h("select", { "aria-label": "Order", title: "Order" }, Object.entries(SORTS).filter(([name]) => index.sorts.includes(name)).map(([value, [label]]) => h("option", { value }, label)));
  inputs.sort.addEventListener("change", () => { state.sort = inputs.sort.value; list.scrollTop = 0; apply(); remember(); });
  count = h("output", { "aria-live": "polite" });
  list = h("div", { class: "rows", role: "listbox", tabindex: "0", "aria-label": "Samples" });
  spacer = h("div", { role: "presentation" });
  list.append(spacer);
  detail = h("div", { class: "detail", tabindex: "-1", role: "region", "aria-label": "Sample" });
  place.replaceChildren(h("h1", { class: "heard" }, "Samples"), h("div", { class: "filters", role: "search" }, search, FILTERS.map((each) => inputs[each.name]), inputs.ranges, inputs.sort, h("button", { type: "button", id: "save-notes", hidden: true, on: { click: saveNotes } }), count), list, detail);
  list.addEventListener("scroll", () => draw(false), { passive: true });
  new ResizeObserver(() => draw(true)).observe(list);
  document.addEventListener("keydown", pressed);
  document.getElementById("keys").addEventListener("click", help);
  document.getElementById("to-samples").addEventListener("click", (event) => { event.preventDefault(); toSamples(); });
  document.getElementById("to-overview").addEventListener("click", (event) => { event.preventDefault(); toOverview(); });
  window.addEventListener("hashchange", recall);
  window.addEventListener("beforeprint", () => { for (const each of document.querySelectorAll(".detail details")) setOpen(each, true); });
  readNotes(location.hash.slice(1));
  refill();
  showNothing();
  if (index.opens && !location.hash) setAddress("samples");
  recall();
}

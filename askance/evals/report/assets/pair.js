// One sample in several runs: what each answered, and where on the way two of them first differ.

const MOST_CELLS = 3000000;

function pieces(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
}

/** What to do to get from one list to another: [sign, pieces], by their longest common subsequence. */
function changes(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const one = a.slice(start, a.length - end);
  const two = b.slice(start, b.length - end);
  const middle = one.length * two.length > MOST_CELLS ? [["-", one], ["+", two]] : common(one, two);
  return [["=", a.slice(0, start)], ...middle, ["=", end ? a.slice(a.length - end) : []]].filter(([, some]) => some.length);
}

function common(a, b) {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const found = [];
  const put = (sign, piece) => {
    const last = found[found.length - 1];
    if (last && last[0] === sign) last[1].push(piece);
    else found.push([sign, [piece]]);
  };
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { put("=", a[i]); i += 1; j += 1; }
    else if (j >= b.length || (i < a.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) { put("-", a[i]); i += 1; }
    else { put("+", b[j]); j += 1; }
  }
  return found;
}

const LEAST_ALIKE = 0.4;

/** What differs of two texts, word by word; texts that have little in common stand one below the other, as a whole. */
function diffElement(a, b) {
  const names = { "=": "span", "-": "del", "+": "ins" };
  const found = changes(pieces(a), pieces(b));
  const words = (some) => some.reduce((sum, piece) => sum + (/[\p{L}\p{N}_]/u.test(piece) ? 1 : 0), 0);
  const count = (which) => found.reduce((sum, [sign, some]) => sum + (sign === which ? words(some) : 0), 0);
  const [alike, old, fresh] = ["=", "-", "+"].map(count);
  if (old && fresh && alike < LEAST_ALIKE * (alike + Math.max(old, fresh))) return wholeElement(a, b);
  return h("div", { class: "diff" }, found.map(([sign, some]) => h(names[sign], {}, some.join(""))));
}

/** Two texts one below the other. */
function wholeElement(a, b) {
  return h("div", { class: "diff whole-texts" }, h("del", {}, a), "\n", h("ins", {}, b));
}

/** A list of samples for every two runs, made from what the page holds of each sample in all of them. */
function pairRuns() {
  const found = [];
  index.names.forEach((_, a) => index.names.forEach((__, b) => { if (a < b) found.push(pairRun(a, b)); }));
  return found;
}

function pairRun(a, b) {
  const [one, two] = [index.letters[a], index.letters[b]];
  return {
    a, b, name: `${one} · ${two}: ${index.names[a]} · ${index.names[b]}`, share: index.share,
    words: { better: `${one} better`, worse: `${two} better`, other: "Other answer", same: "Same answer" },
    rows: index.rows.map((row) => pairRow(row, a, b)),
  };
}

function pairRow(row, a, b) {
  const [one, two] = [a, b].map((place) => (index.lower ? -1 : 1) * (row.worths[place] || 0));
  const either = (values) => values[a] === values[b] ? values[a] : `${values[a]} → ${values[b]}`;
  const cut = (text) => text.length <= 70 ? text : `${text.slice(0, 69)}…`;
  const written = (place) => row.worths[place] === null ? "–" : index.share ? (100 * row.worths[place]).toFixed(1) : row.worths[place].toFixed(3);
  return {
    id: row.id, title: row.title, about: row.about, epoch: row.epoch, marks: row.marks, picture: row.picture, outcome: either(row.outcomes),
    result: one > two ? "better" : one < two ? "worse" : row.answers[a] === row.answers[b] ? "same" : "other",
    worth: one - two, figures: row.worths[a] === row.worths[b] ? "" : `${written(a)} → ${written(b)}`,
    said: row.said[a] === row.said[b] ? row.said[a] : `${cut(row.said[a])} ⇄ ${cut(row.said[b])}`,
    kinds: [...new Set([...row.kinds[a], ...row.kinds[b]])], tools: [...new Set([...row.tools[a], ...row.tools[b]])], unlike: row.asked[a] !== row.asked[b],
    links: Object.entries(row.links || {}).filter(([, said]) => said[a] !== said[b]).map(([name]) => name),
  };
}

/** The two runs that are chosen: their places, letters and names. */
function chosenPair() {
  const { a, b } = index.runs[Number(state.run)];
  return [a, b].map((place) => ({ place, letter: index.letters[place], name: index.names[place] }));
}

function pairDetail(row, { detail: { sides: all }, calls }) {
  const pair = chosenPair();
  const [a, b] = pair.map(({ place }) => all[place]);
  const picture = pictureOf(row, a);
  const answer = a.options && !a.hits ? pairOptions(a, all) : sides((one) => freeAnswer(one, "h4"), a, b);
  const top = h("div", { class: `pair-wide about${picture ? "" : " plain"}` }, picture, answer);
  const unlike = row.unlike ? h("p", { class: "warning" }, "The two were not asked the same: another picture, options or target.") : null;
  const score = a.score || b.score ? h("div", { class: "pair-wide" }, h("h2", {}, "Score"), sides(scoreValues, a, b)) : null;
  return [unlike, inAll(row), top, reasonsOf(a, b), inputsOf(a), noteElement(row), pairSteps(a, b), pairExamples(a, b), upstream(pair, a, b, calls), score];
}

/** What the sample is worth in every run, where there are more than the two that are shown. */
function inAll(row) {
  if (index.names.length < 3) return null;
  const { worths, outcomes } = index.rows[row.at];
  const shown = chosenPair().map(({ place }) => place);
  const said = (place) => worths[place] === null ? outcomes[place] : index.share ? `${(100 * worths[place]).toFixed(1)} %` : worths[place].toFixed(3);
  return h("ul", { class: "in-all", "aria-label": "In all runs" }, index.names.map((name, place) => h("li", { class: shown.includes(place) ? "shown" : null },
    h("span", { class: "letter" }, index.letters[place]), " ", h("bdi", {}, name), " ", h("b", {}, said(place)))));
}

function scoreValues(one) {
  if (!one.score) return h("p", { class: "soft" }, "none");
  return h("p", { class: "values" }, Object.entries(one.score.values).map(([name, value]) => h("span", {}, `${name} `, h("b", {}, Number(Number(value).toFixed(4))))));
}

function sides(make, a, b) {
  const pair = chosenPair();
  return h("div", { class: "sides" }, [a, b].map((one, number) => h("div", {}, h("h3", {}, h("span", { class: "letter" }, pair[number].letter), ` ${pair[number].name}`), make(one))));
}

function reasonsOf(a, b) {
  return a.reason || b.reason ? sides((one) => h("p", { class: one.reason ? "warning" : "soft" }, one.reason || "answered"), a, b) : null;
}

function pairOptions(a, all) {
  const items = a.options.map((text, place) => {
    const isTrue = a.true ? a.true.includes(place + 1) : null;
    const kind = (a.kinds || [])[place];
    const flags = all.map((one, number) => {
      const other = (one.options || []).indexOf(text) + 1;
      const rank = (one.chosen || []).indexOf(other) + 1;
      return rank ? h("span", { class: `flag ${isTrue === false ? "no" : "yes"}` }, `${index.letters[number]}${(one.chosen || []).length > 1 ? ` ${rank}.` : ""}${isTrue === null ? "" : isTrue ? " ✓" : " ✗"}`) : null;
    });
    const chosen = flags.some(Boolean);
    return h("li", { class: `${chosen && isTrue !== null ? (isTrue ? "hit" : "miss") : ""} ${isTrue ? "true" : ""}` },
      h("span", { class: "n" }, place + 1), h("span", { class: "words" }, text),
      h("span", { class: "flags" }, flags, isTrue ? h("span", { class: "flag yes" }, "true") : kind && kind !== "true" ? h("span", { class: "flag" }, kind) : null));
  });
  const legend = index.names.map((name, place) => `${index.letters[place]}: ${name}`).join(" · ");
  return h("div", {}, h("ol", { class: "options" }, items), h("p", { class: "note" }, legend));
}

function pairExamples(a, b) {
  const shows = (side) => shownExamples(side).length;
  if (!shows(a) && !shows(b)) return null;
  const made = (side) => shows(side) ? h("div", {}, exampleChoice(side), examplesList(side)) : h("p", { class: "soft" }, "none");
  return h("section", { class: "pair-wide" }, h("h2", {}, "Examples before the question"), sides(made, a, b));
}

function promptText(call) {
  if (!call) return "";
  if (!call.messages) return json(call.request);
  return call.messages.map((message) => `[${message.role}]\n${message.parts.map((part) => typeof part === "string" ? part : `(picture ${String((part.part || {}).sha256 || "").slice(0, 12)})`).join("\n")}`).join("\n\n");
}

function linkText(one, name, calls) {
  const link = (one.links || []).find((each) => each.name === name);
  if (!link) return { missing: true, said: "", prompt: "", model: "" };
  const some = (link.calls || []).map((key) => calls[key]).filter(Boolean);
  const said = (one.verbalization || {})[name] ?? (name === "statement" && one.statement ? one.statement.text : undefined) ?? (["answers", "reply"].includes(name) ? answerWords(one) : undefined);
  const replied = some.map((call) => json((call.reply || {}).text ?? call.response ?? "")).join("\n");
  return {
    said: said === undefined ? (replied || link.reason || "") : Array.isArray(said) ? said.join("\n") : json(said),
    prompt: some.map(promptText).join("\n\n"), model: some.map((call) => call.model).join(", "), outcome: link.outcome, given: link.given,
  };
}

function answerWords(one) {
  if (one.hits) return one.hits.map((hit) => hit.text).join("\n");
  if (one.table) return one.table.rows.map(({ text, numbers }) => `${text} ${numbers.map(rounded).join(" ")}`).join("\n");
  return one.chosen ? one.chosen.map((place) => one.options[place - 1]).join("\n") : one.value === undefined ? undefined : json(one.value);
}

function upstream(pair, a, b, calls) {
  const [left, right] = pair.map(({ letter }) => letter);
  const names = [...new Set([...(a.links || []), ...(b.links || [])].map((link) => link.name))];
  if (!names.length) return null;
  let first = true;
  const parts = names.map((name) => {
    const [one, two] = [a, b].map((side) => linkText(side, name, calls));
    const where = [];
    if (one.missing || two.missing) where.push(`${one.missing ? right : left} alone`);
    else {
      if (one.model !== two.model) where.push("model");
      if (one.prompt !== two.prompt) where.push("prompt");
      if (one.said !== two.said) where.push("answer");
      if (one.outcome !== two.outcome) where.push("outcome");
    }
    const made = h("details", { class: "link-diff" }, h("summary", {}, h("b", {}, linkTitle(name)), " · ", one.missing || two.missing ? `in ${where[0]}` : where.length ? `differs: ${where.join(", ")}` : "the same in both", where.length && first ? [" ", h("span", { class: "mark m-worse" }, "first difference")] : null));
    if (where.length) first = false;
    if (where.length && !one.missing && !two.missing) made.dataset.differs = "1";
    return unfolding(made, () => linkDiff(one, two));
  });
  const section = h("section", { class: "pair-wide" }, h("h2", {}, "On the way"), h("p", { class: "note" }, h("del", {}, `${left} alone: ${pair[0].name}`), " · ", h("ins", {}, `${right} alone: ${pair[1].name}`)), parts);
  for (const each of parts.filter((each) => each.dataset.differs).slice(0, 1)) setOpen(each, true);
  return section;
}

function linkDiff(one, two) {
  const body = h("div", {});
  if (one.missing || two.missing) {
    const there = one.missing ? two : one;
    body.append(part("Said", h("div", { class: "diff" }, there.said)));
    if (there.prompt) body.append(part("Asked", h("div", { class: "diff" }, there.prompt)));
    return body;
  }
  if (one.model !== two.model) body.append(part("Model", diffElement(one.model, two.model)));
  body.append(part(one.said === two.said ? "Said in both" : "Said", diffElement(one.said, two.said)));
  if (one.prompt || two.prompt) body.append(part(one.prompt === two.prompt ? "Asked in both" : "Asked", diffElement(one.prompt, two.prompt)));
  return body;
}

function part(title, content) {
  return h("div", {}, h("h3", { class: "small" }, title), content);
}

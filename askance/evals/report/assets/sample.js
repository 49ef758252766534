// One sample in full: its picture, options, verbalizations, score, and every call.

/** What the page calls a link: as the papers do, or by its name. */
function linkTitle(name) {
  return index.links[name] || name;
}

function sampleDetail(row, { detail: one, calls }) {
  return [about(row, one), reasons(one), inputsOf(one), stepsOf(one), noteElement(row), verbalizations(one), examplesOf(one), scored(one), blamed(one), linksOf(one, calls), others(one), rest(row, one)];
}

function about(row, one) {
  const picture = pictureOf(row, one);
  const answer = one.options && !one.hits ? options(one) : freeAnswer(one);
  return h("div", { class: picture ? "about" : "about plain" }, picture, answer);
}

function pictureOf(row, one) {
  const name = one.image ? `The picture ${one.image.name}` : "The picture";
  const made = one.regions === undefined ? thumbnail(row, { alt: name }) : thumbnail({ picture: one.regions }, { alt: `${name} with its regions` });
  if (made || !one.image) return pictureButton(made);
  return index.anyPicture ? h("p", { class: "lost" }, one.image.name, h("br"), h("code", {}, one.image.sha256.slice(0, 12))) : null;
}

function options(one) {
  const chosen = one.chosen || [];
  const items = one.options.map((text, place) => {
    const isTrue = one.true ? one.true.includes(place + 1) : null;
    const rank = chosen.indexOf(place + 1) + 1;
    const kind = (one.kinds || [])[place];
    const look = rank && isTrue !== null ? (isTrue ? "hit" : "miss") : "";
    return h("li", { class: `${look} ${isTrue ? "true" : ""}` },
      h("span", { class: "n" }, place + 1),
      h("span", { class: "words" }, text),
      h("span", { class: "flags" },
        rank ? h("span", { class: `flag ${isTrue === false ? "no" : "yes"}` }, `${isTrue === false ? "✗" : isTrue ? "✓" : "•"} chosen${chosen.length > 1 ? ` ${rank}.` : ""}`) : null,
        isTrue ? h("span", { class: "flag yes" }, "true") : kind && kind !== "true" ? h("span", { class: "flag" }, kind) : null,
      ),
    );
  });
  const said = one.value === undefined ? null : labelled([["Answer", json(one.value)]]);
  return h("div", {}, h("ol", { class: "options", "aria-label": "Options" }, items), said);
}

/** The true entries with their ranks, and the first hits of a ranking. */
function hitList(one, heading) {
  const truths = (one.truths || []).map(({ text, rank }) => h("li", {},
    h("span", { class: "n" }, rank === undefined ? "–" : rank.toLocaleString("en")), h("span", { class: "words" }, text),
    h("span", { class: "flags" }, rank === undefined ? h("span", { class: "flag no" }, "not found") : null)));
  const hits = one.hits.map((hit, place) => {
    const same = hit.verdict === "true";
    const flag = hit.true ? "✓ true" : same ? "says the same" : hit.verdict ? `judged ${hit.verdict}` : null;
    return h("li", { class: hit.true ? "hit true" : same ? "hit" : null },
      h("span", { class: "n" }, place + 1), h("span", { class: "words" }, hit.text),
      h("span", { class: "flags" }, flag ? h("span", { class: hit.true || same ? "flag yes" : "flag" }, flag) : null));
  });
  const more = one.ranked > hits.length ? h("p", { class: "note" }, `The first ${hits.length} of ${one.ranked.toLocaleString("en")}.`) : null;
  return h("div", {},
    truths.length ? [h(heading, {}, "True, with their ranks"), h("ol", { class: "options", "aria-label": "True, with their ranks" }, truths)] : null,
    h(heading, {}, "Hits"), h("ol", { class: "options", "aria-label": "Hits" }, hits), more);
}

function rounded(number) {
  return Number(Number(number).toFixed(3));
}

/** Scores of inferences, with what people say of them. */
function scoreTable({ columns, rows }) {
  return h("div", { class: "scores" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "inference"), columns.map((name) => h("th", { scope: "col", class: "num" }, name)))),
    h("tbody", {}, rows.map(({ text, numbers, true: own }) => h("tr", {}, h("th", { scope: "row", class: "words" }, text),
      numbers.map((each, place) => h("td", { class: "num" }, listOf(own).includes(place) ? h("span", { class: "flag yes" }, "✓ true ") : null, rounded(each))))))));
}

function freeAnswer(one, heading = "h2") {
  if (one.hits) return hitList(one, heading);
  if (one.table) return scoreTable(one.table);
  const lines = [];
  if (one.value !== undefined) lines.push(["Answer", json(one.value)]);
  if (one.target !== undefined) lines.push(["True", json(one.target)]);
  return lines.length ? labelled(lines) : h("p", { class: "soft" }, "No answer.");
}

function labelled(lines) {
  return h("dl", { class: "cards" }, lines.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, typeof text === "string" ? fullText(text, "span", 4000) : text))));
}

function reasons(one) {
  const texts = [one.reason, one.unscored].filter(Boolean);
  return texts.length ? h("p", { class: "warning" }, texts.join(" · ")) : null;
}

/** What is given of a sample beside its picture and its options; what the page shows elsewhere is left out. */
function inputsOf(one) {
  const elsewhere = ["examples", "regions", "inferences"];
  const given = Object.entries(one.inputs || {}).filter(([name, value]) => !elsewhere.includes(name) && value !== null && value !== "");
  return given.length ? h("section", {}, h("h2", {}, "Inputs"), labelled(given.map(([name, value]) => [name.replaceAll("_", " "), noteText(value)]))) : null;
}

function verbalizations(one) {
  const lines = [];
  for (const [name, said] of Object.entries(one.verbalization || {})) {
    const shownAs = Array.isArray(said) ? h("span", { class: "chips" }, said.map((each) => h("span", {}, json(each)))) : json(said);
    lines.push([linkTitle(name), Array.isArray(said) && !said.length ? "nothing" : shownAs]);
  }
  if (one.statement) lines.push([linkTitle("statement"), [h("b", {}, one.statement.relation || ""), " ", one.statement.text || json(one.statement)]]);
  return lines.length ? h("section", {}, h("h2", {}, "Verbalization"), labelled(lines)) : null;
}

/** The questions that were shown with their answers before this one was asked, and how they were chosen. */
function examplesOf(one) {
  if (!shownExamples(one).length) return null;
  return h("section", {}, h("h2", {}, "Examples before the question"), exampleChoice(one), examplesList(one));
}

/** Another input of that name, in a file that anybody may have written, holds no examples. */
function shownExamples(one) {
  const shown = listOf((one.inputs || {}).examples);
  return shown.every((each) => each && typeof each.values === "object") ? shown : [];
}

function listOf(value) {
  return Array.isArray(value) ? value : [];
}

function exampleChoice(one) {
  const { from, embedder, compared, draw, left_out: leftOut } = one.shots || {};
  if (!from) return null;
  const how = embedder ? `chosen by ${from}: ${compared} compared by ${embedder}, the nearest last` : `drawn at random${draw === "official" ? " as the authors' script does" : ""}`;
  const lost = listOf(leftOut).filter(Boolean).map((each) => h("p", { class: "note" }, `${json(each.id)} left out: ${json(each.why)}`));
  return [h("p", { class: "note" }, how), lost];
}

function examplesList(one) {
  const chosen = listOf((one.shots || {}).chosen);
  return h("ol", { class: "options", "aria-label": "Examples" }, shownExamples(one).map((each, place) => {
    const { id, group, similarity } = chosen[place] || {};
    const name = id === undefined ? "example" : [id, group === id ? null : `group ${group}`].filter(Boolean).join(" · ");
    const told = Object.entries(each.values || {}).map(([name, value]) => [name.replaceAll("_", " "), Array.isArray(value) ? value.map(json).join("\n") : noteText(value)]);
    if (each.image) told.unshift(["picture", each.image.name || String(each.image.sha256).slice(0, 12)]);
    const body = h("details", {}, h("summary", {}, name, " · answer ", h("b", {}, each.answer === undefined ? "–" : noteText(each.answer))), told.map(([part, text]) => titled(part, text)));
    const flag = similarity === undefined ? null : h("span", { class: "flags" }, h("span", { class: "flag", title: "Cosine to the question" }, Number(similarity).toFixed(3)));
    return h("li", {}, h("span", { class: "n" }, place + 1), h("span", { class: "words" }, body), flag);
  }));
}

function scored(one) {
  if (!one.score) return null;
  const values = Object.entries(one.score.values).map(([name, value]) => h("span", {}, `${name} `, h("b", {}, Number(Number(value).toFixed(4)))));
  const notes = Object.entries(one.score.notes || {}).filter(([name]) => name !== "judge" && !(one.hits && ["ranks", "verdicts"].includes(name)));
  const judge = (one.score.notes || {}).judge;
  const lines = notes.map(([name, value]) => [name, noteText(value)]);
  if (judge) lines.push(["judge", judge.judge || json(judge)]);
  return h("section", {}, h("h2", {}, "Score"), h("p", { class: "values" }, values), lines.length ? h("div", { class: "more" }, labelled(lines)) : null);
}

/** A note in a line where it is flat: texts, numbers, lists and maps of them. */
function noteText(value) {
  const flat = (each) => each === null || typeof each !== "object";
  if (Array.isArray(value) && value.every(flat)) return value.map(json).join(" · ");
  if (value && typeof value === "object" && Object.values(value).every(flat)) return Object.entries(value).map(([name, each]) => `${name} ${json(each)}`).join(" · ");
  return json(value);
}

function linksOf(one, calls) {
  const links = (one.links || []).map((link) => {
    const keys = [...(link.calls || []), link.failed].filter(Boolean);
    return keys.length ? keys.map((key) => callElement(key, calls[key], stepTitle(one, link.name, key), link, one)) : linkElement(link);
  });
  const judges = ((one.score || {}).calls || []).map((key) => callElement(key, calls[key], "Scoring", null, one));
  if (!links.length && !judges.length) return null;
  const all = h("button", { type: "button", class: "more", title: "o", on: { click: openAll } }, "Open or close all");
  return h("section", {}, h("h2", {}, "Calls"), links, judges, h("p", {}, all));
}

function linkElement(link) {
  const words = link.given ? "given, not asked" : [link.outcome, link.reason].filter(Boolean).join(": ");
  const made = h("p", { class: "small more" }, h("b", {}, linkTitle(link.name)), " · ", words);
  return link.raw ? [made, titled("reply", json(link.raw), "reply")] : made;
}

function tally(call, tries) {
  const usage = ((call && call.reply) || {}).usage || {};
  const parts = [];
  if (usage.input !== undefined || usage.output !== undefined) parts.push(`${(usage.input || 0).toLocaleString("en")} → ${(usage.output || 0).toLocaleString("en")} tokens`);
  if (tries.length > 1) parts.push(`${tries.length} tries`);
  if (call && call.dollars !== undefined) parts.push(`$${Number(call.dollars.toPrecision(2))}`);
  if (tries.length) parts.push(`${tries.reduce((sum, each) => sum + (each.seconds || 0), 0).toFixed(1)} s`);
  return parts.join(" · ");
}

function callElement(key, call, title, link, one) {
  const tries = (one.tries || {})[key] || [];
  const outcome = link && link.outcome !== "answered" ? h("span", { class: "mark m-wrong" }, link.outcome) : null;
  const summary = h("summary", {}, h("b", {}, title), outcome, h("span", {}, call ? call.model : ""), h("span", { class: "end" }, tally(call, tries)));
  return unfolding(h("details", { class: "call" }, summary), () => callBody(key, call, link, tries));
}

function callBody(key, call, link, tries) {
  const facts = [`key ${key}`, call && call.at, link && link.rung && `asked as ${link.rung}`].filter(Boolean);
  const failed = tries.filter((each) => each.error).map((each, number) => h("p", { class: "small" }, `Try ${number + 1}: ${each.error} (${(each.seconds || 0).toFixed(1)} s)`));
  const body = h("div", {}, h("p", { class: "small num" }, facts.join(" · ")), failed);
  if (link && (link.reason || link.error)) body.append(h("p", { class: "warning" }, [link.error, link.reason].filter(Boolean).join(": ")));
  if (!call) {
    const without = index.without || "The record of this call is not in the run's folder.";
    body.append(h("p", { class: "small" }, link && link.failed === key ? "Nothing was answered, so nothing is on record." : without));
    return body;
  }
  for (const message of call.messages || []) body.append(messageElement(message));
  body.append(...views(call.views, (call.request || {}).image));
  if (call.request) body.append(titled("Request", json(call.request)), titled("Response", json(call.response), "reply"));
  if (call.reply) body.append(...reply(call.reply));
  if (call.asked) body.append(h("details", { class: "more" }, h("summary", {}, "What else was asked: form of the answer, sampling"), h("pre", { tabindex: "0" }, json(call.asked))));
  return body;
}

function titled(title, text, look) {
  return h("div", { class: `message ${look || ""}` }, h("h3", {}, title), fullText(text));
}

/** The views that a call shows, as pictures; none where the page has no pictures. */
function views(numbers, form) {
  const { view } = form || {};
  return (numbers || []).map((picture) => pictureButton(thumbnail({ picture }, { class: "view", loading: "lazy", alt: `What was shown: ${view.show} of ${JSON.stringify(view.boxes)}` })));
}

function messageElement(message) {
  const parts = message.parts.map((part) => {
    if (typeof part === "string") return fullText(part);
    const named = part.part || {};
    const told = h("p", { class: "small" }, named.type === "image" ? `picture ${String(named.sha256 || "").slice(0, 12)}${named.view ? `, view ${JSON.stringify(named.view)}` : ""}${named.policy ? `, sent by the policy ${named.policy.name} ${named.policy.version}` : ""}` : json(named));
    return [views(part.views, named), told];
  });
  return h("div", { class: "message" }, h("h3", {}, message.role), parts, message.rest ? h("pre", {}, json(message.rest)) : null);
}

function reply(response) {
  const made = [];
  if (response.thinking) made.push(h("details", { class: "message" }, h("summary", {}, "Thinking"), fullText(json(response.thinking))));
  if (response.text !== undefined && response.text !== null) made.push(titled("reply", json(response.text), "reply"));
  if (response.refusal) made.push(titled("refusal", json(response.refusal), "reply"));
  const other = Object.fromEntries(Object.entries(response).filter(([name]) => !["text", "thinking", "refusal"].includes(name)));
  if (Object.keys(other).length) made.push(h("p", { class: "small more" }, Object.entries(other).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ")));
  return made;
}

/** The same sample in other runs of the report. */
function others(one) {
  const found = index.runs.map((run, number) => [run, number, run.rows.find(isOpen)]).filter(([, number, row]) => row && String(number) !== state.run);
  if (!found.length) return null;
  const links = found.map(([run, number, row]) => h("p", {}, h("span", { class: `mark m-${dashed(row.result)}` }, index.words[row.result] || row.result), " ",
    h("a", { href: "#samples", on: { click: (event) => { event.preventDefault(); state.run = String(number); refill(); apply(); open(row); } } }, run.name)));
  return h("section", {}, h("h2", {}, "In other runs"), links);
}

function rest(row, one) {
  const raw = { id: row.id, epoch: row.epoch, group: one.group, image: one.image, inputs: one.inputs, tags: one.tags, target: one.target, true: one.true, trace: one.trace };
  const there = Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== undefined));
  return h("details", { class: "more" }, h("summary", {}, "The sample as data"), h("pre", { tabindex: "0" }, json(there)));
}

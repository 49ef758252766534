// How an agent looked around in a picture: its steps one below the other, to be filtered by tool and by words.

function stepsOf(one) {
  const found = listOf(one.looking);
  return found.length ? h("section", {}, h("h2", {}, "Steps"), found.map(transcript)) : null;
}

/** Of two runs, the steps side by side. */
function pairSteps(a, b) {
  if (!listOf(a.looking).length && !listOf(b.looking).length) return null;
  const made = (side) => listOf(side.looking).length ? side.looking.map(transcript) : h("p", { class: "soft" }, "It did not look with tools.");
  return h("section", { class: "pair-wide" }, h("h2", {}, "Steps"), sides(made, a, b));
}

function transcript({ link, facts, steps }) {
  const evidence = listOf(facts.evidence);
  const items = steps.map((step) => stepElement(step, evidence.includes(step.step)));
  const heading = link && link !== "answers" && link !== "reply" ? h("h3", {}, linkTitle(link)) : null;
  return h("div", { class: "transcript" }, heading, stepFacts(facts), steps.length > 1 ? stepFilter(steps, items) : null, h("ol", { class: "steps" }, items));
}

function stepFacts({ confidence, enough, budget, form, malformed, repeated, ended }) {
  const told = [
    confidence === undefined ? null : `confidence ${confidence} %`, enough === false ? "not enough to answer" : null, budget ? `budget ${budget}` : null,
    ended && ended !== "answered" ? `ended: ${ended}` : null, form ? `asked by ${form}` : null, malformed ? `${malformed} malformed` : null, repeated ? `${repeated} looked at before` : null,
  ].filter(Boolean);
  return told.length ? h("p", { class: "note" }, told.join(" · ")) : null;
}

function stepFilter(steps, items) {
  const texts = steps.map((step) => { const found = []; strings(step, found); return found.join("\n").toLowerCase(); });
  const tools = [...new Set(steps.map((step) => step.tool).filter(Boolean))].sort();
  const tool = h("select", { "aria-label": "Tool of the step" }, h("option", { value: "" }, "Any tool"), tools.map((name) => h("option", { value: name }, name)));
  const words = h("input", { type: "search", placeholder: "Search the steps", "aria-label": "Search the steps", autocomplete: "off", spellcheck: "false" });
  const told = h("output", { "aria-live": "polite" });
  const filter = () => {
    const fit = steps.map((step, place) => (!tool.value || step.tool === tool.value) && texts[place].includes(words.value.toLowerCase()));
    items.forEach((item, place) => { item.hidden = !fit[place]; });
    const many = fit.filter(Boolean).length;
    told.textContent = many === steps.length ? "" : `${many} of ${steps.length} steps`;
  };
  tool.addEventListener("change", filter);
  words.addEventListener("input", filter);
  return h("div", { class: "step-filter" }, tool, words, told);
}

function stepElement(step, evidence) {
  const failed = step.outcome && step.outcome !== "answered" ? h("span", { class: "mark m-wrong" }, step.outcome) : null;
  const head = h("div", { class: "step-head" },
    h("span", { class: "n num" }, step.step), h("b", {}, step.tool || "no tool"), failed,
    step.repeated ? h("span", { class: "flag" }, "looked at before") : null, evidence ? h("span", { class: "flag yes" }, "evidence") : null,
    step.left ? h("span", { class: "end soft num" }, `${step.left} left`) : null);
  const seen = [
    step.boxed === undefined ? null : pictureButton(thumbnail({ picture: step.boxed }, { class: "boxed", loading: "lazy", alt: "The picture with the regions that were looked at" })),
    listOf(step.crops).map((picture, place) => pictureButton(thumbnail({ picture }, { class: "crop", loading: "lazy", alt: `Region ${place + 1} that was looked at` }))),
  ].flat().filter(Boolean);
  const told = h("div", { class: "told" },
    step.thought ? h("p", { class: "thought" }, step.thought) : null,
    Object.entries(step.arguments || {}).map(([name, value]) => h("p", { class: "small" }, `${name} `, h("span", { class: "given" }, Array.isArray(value) ? json(value) : noteText(value)))),
    step.reply ? h("div", { class: "said" }, fullText(step.reply, "p")) : null,
    step.note ? h("p", { class: "small" }, step.note) : null, step.reason ? h("p", { class: "warning" }, step.reason) : null);
  return h("li", { class: seen.length ? "step" : "step plain" }, head, seen.length ? h("div", { class: "seen" }, seen) : null, told);
}

/** Of a link whose calls belong to steps, what a call is titled with. */
function stepTitle(one, link, key) {
  for (const each of listOf(one.looking)) {
    const step = each.link === link ? each.steps.find((step) => listOf(step.calls).includes(key)) : null;
    if (step) return `Step ${step.step}${step.tool ? `: ${step.tool}` : ""}`;
  }
  return linkTitle(link);
}

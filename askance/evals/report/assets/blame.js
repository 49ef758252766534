// What became of one wrong answer when its links were replaced, one at a time.

function blamed(one) {
  if (!one.blame) return null;
  return h("section", {}, h("h2", {}, "Blame"), one.blame.map((each) => blamedBy(one, each)));
}

function blamedBy(one, blame) {
  const guilty = blame.trials.filter((trial) => trial.guilty).map((trial) => linkTitle(trial.link));
  const said = guilty.length ? `To blame: ${guilty.join(", ")}.` : "No single link turns the answer right.";
  return h("div", { class: "blamed" },
    h("p", {}, h("b", {}, said), h("span", { class: "soft" }, ` Each link ${blame.words}, and what follows from it asked again.`)),
    blame.trials.map((trial) => trialElement(one, blame, trial)),
  );
}

function trialElement(one, blame, trial) {
  const mark = trial.guilty ? h("span", { class: "mark m-right" }, "to blame") : trial.flips ? h("span", { class: "mark m-partly" }, "flips it too") : null;
  const shift = trial.worth === null ? trial.outcome || "no answer" : `${blame.metric} ${number(blame.was)} → ${number(trial.worth)}`;
  const summary = h("summary", {}, h("b", {}, linkTitle(trial.link)), ` · ${shift}`, mark);
  const made = unfolding(h("details", { class: "link-diff" }, summary), () => trialBody(one, blame, trial));
  if (trial.guilty) setOpen(made, true);
  return made;
}

function trialBody(one, blame, trial) {
  const body = h("div", {});
  if (!trial.outcome) {
    body.append(h("p", { class: "small" }, "The line of this trial is not in the folder."));
    return body;
  }
  const put = trial.put === undefined ? h("p", { class: "soft" }, `Nothing: it was ${blame.words}.`) : diffElement(linkSaid(one, trial.link), trial.put);
  body.append(part("In its place", put));
  for (const [link, text] of Object.entries(trial.became || {})) body.append(part(`Then ${linkTitle(link)}`, diffElement(linkSaid(one, link), text)));
  const now = trial.chosen ? placesText(one, trial.chosen) : trial.value !== undefined ? json(trial.value) : "";
  if (trial.outcome === "answered") {
    const before = one.chosen ? placesText(one, one.chosen) : one.value === undefined ? "" : json(one.value);
    body.append(before === now ? part("The answer stayed", h("div", { class: "diff" }, before)) : part("The answer became", became(before, now, Boolean(trial.chosen))));
  } else body.append(h("p", { class: "warning" }, [trial.outcome, trial.reason].filter(Boolean).join(": ")));
  return body;
}

/** Two answers: options each as a whole, free ones by what differs. */
function became(before, now, whole) {
  return whole ? wholeElement(before, now) : diffElement(before, now);
}

function linkSaid(one, link) {
  if (link === "statement") return one.statement ? one.statement.text || json(one.statement) : "";
  const said = (one.verbalization || {})[link];
  return said === undefined ? "" : Array.isArray(said) ? said.map(json).join("\n") : json(said);
}

function placesText(one, places) {
  return places.map((place) => `${place}. ${(one.options || [])[place - 1] ?? ""}`).join("\n");
}

function number(value) {
  return String(Number(Number(value).toFixed(3)));
}

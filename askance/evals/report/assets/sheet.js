const sheet = document.body.dataset.sheet, place = "askance sheet " + sheet;
const inputs = [...document.querySelectorAll(".choices input")];
const sets = [...document.querySelectorAll("fieldset")];
const rater = document.getElementById("rater"), count = document.getElementById("count");
let kept = {};
try { kept = JSON.parse(localStorage.getItem(place) || "{}"); } catch (error) { kept = {}; }
rater.value = typeof kept.rater === "string" ? kept.rater : "";
for (const input of inputs) if ((kept.answers || {})[input.name] === input.value) input.checked = true;
function answers() {
  const found = {};
  for (const input of inputs) if (input.checked) found[input.name] = input.value;
  return found;
}
function keep() {
  const found = answers();
  count.textContent = Object.keys(found).length + " of " + sets.length + " answered";
  try { localStorage.setItem(place, JSON.stringify({ rater: rater.value, answers: found })); } catch (error) { return; }
}
document.addEventListener("change", keep);
document.addEventListener("keydown", (event) => {
  const set = event.target.closest && event.target.closest("fieldset");
  const number = ["1", "2", "3"].indexOf(event.key);
  if (!set || number < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const input = set.querySelectorAll("input")[number];
  input.checked = true;
  keep();
  const next = sets[sets.indexOf(set) + 1];
  if (next) (next.querySelector("input:checked") || next.querySelector("input")).focus();
  event.preventDefault();
});
const cell = (text) => '"' + text.replace(/"/g, '""') + '"';
document.getElementById("save").addEventListener("click", () => {
  const found = answers(), names = [...new Set(inputs.map((input) => input.name))];
  const rows = names.map((name) => [sheet, name, found[name] || ""].map(cell).join(","));
  const text = ["sheet,item,answer", ...rows].join("\n") + "\n";
  saveFile(text, "text/csv", `${fileName(rater.value) || "answers"}.csv`);
});
keep();

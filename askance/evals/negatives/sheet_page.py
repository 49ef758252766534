"""The page that raters fill in: one file with everything in it, which works from a disk and without a network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from string import Template

ANSWERS = (("right", "Right"), ("wrong", "Wrong"), ("unsure", "Cannot tell"))
"""What can be answered, and how it is labelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageImage:
    """One image and its statements."""

    number: int
    data: bytes | None
    """A JPEG file; None where there is none to show."""
    statements: tuple[tuple[str, str], ...]
    """Id and text."""


def page(sheet: str, images: Sequence[PageImage], *, question: str) -> str:
    """The page as HTML.

    Args:
        sheet: the sheet's id, under which the browser keeps the answers and which is saved with them.
        images: in their order.
        question: asked of every statement.
    """
    total = sum(len(image.statements) for image in images)
    return _PAGE.substitute(
        sheet=escape(sheet),
        question=escape(question),
        total=f"{total:,}",
        images="\n".join(_image(image, of=len(images)) for image in images),
        style=_STYLE,
        script=_SCRIPT,
    )


def _image(image: PageImage, *, of: int) -> str:
    title = f"Image {image.number} of {of}"
    statements = "\n".join(_statement(*each) for each in image.statements)
    return (
        f'<section aria-labelledby="i{image.number}"><h2 id="i{image.number}">{title}</h2>\n'
        f'{_picture(image, title)}\n<div class="statements">\n{statements}\n</div></section>'
    )


def _picture(image: PageImage, title: str) -> str:
    if image.data is None:
        return '<p class="none">This image could not be read; leave its statements unanswered.</p>'
    return f'<img alt="{title}" src="data:image/jpeg;base64,{b64encode(image.data).decode("ascii")}">'


def _statement(item: str, text: str) -> str:
    choices = "".join(
        f'<label><input type="radio" name="{escape(item)}" value="{value}"><span>{label}</span></label>'
        for value, label in ANSWERS
    )
    return f'<fieldset><legend dir="auto">{escape(text)}</legend><div class="choices">{choices}</div></fieldset>'


_STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1d1d1b; --soft: #6a675f; --line: #d9d5cb; --mark: #1f5fa8;
  --on-mark: #ffffff; --card: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --paper: #171716; --ink: #ecebe6; --soft: #a5a299; --line: #3b3a36;
  --mark: #8ab8ee; --on-mark: #10161d; --card: #201f1e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
header { position: sticky; top: 0; z-index: 1; background: var(--paper); border-bottom: 1px solid var(--line); }
header div, main { max-width: 72rem; margin: 0 auto; padding: .75rem 1rem; }
header div { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; }
h1 { font-size: 1.05rem; margin: 0; flex: 1 1 16rem; }
h2 { font-size: .85rem; font-weight: 600; color: var(--soft); margin: 0 0 .5rem; grid-column: 1 / -1; }
.how { color: var(--soft); max-width: 46rem; }
section { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 0 1.5rem; padding: 1.5rem 0;
  border-top: 1px solid var(--line); }
img, .none { width: 100%; height: auto; align-self: start; position: sticky; top: 5rem; border-radius: 4px; margin: 0; }
fieldset { border: 1px solid var(--line); border-radius: 6px; background: var(--card); margin: 0 0 .6rem;
  padding: .6rem .8rem; min-width: 0; }
fieldset:focus-within { border-color: var(--mark); }
legend { float: left; width: 100%; padding: 0; margin: 0 0 .45rem; overflow-wrap: anywhere; unicode-bidi: isolate; }
.choices { clear: both; display: flex; flex-wrap: wrap; gap: .4rem; }
label { cursor: pointer; }
.choices input { position: absolute; opacity: 0; }
.choices span { display: block; padding: .25rem .8rem; border: 1px solid var(--line); border-radius: 99px; }
.choices input:checked + span { background: var(--mark); border-color: var(--mark); color: var(--on-mark); }
.choices input:focus-visible + span { outline: 3px solid var(--mark); outline-offset: 2px; }
button, .name input { font: inherit; color: inherit; padding: .35rem .9rem; border: 1px solid var(--line);
  border-radius: 6px; background: var(--card); }
.name input { width: 9rem; }
button:focus-visible, .name input:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
output { font-variant-numeric: tabular-nums; color: var(--soft); }
@media (max-width: 44rem) { section { grid-template-columns: minmax(0, 1fr); } img, .none { position: static;
  margin-bottom: .8rem; } header { position: static; } }
"""

_SCRIPT = """
"use strict";
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
  const text = ["sheet,item,answer", ...rows].join("\\n") + "\\n";
  const link = document.createElement("a");
  const who = rater.value.trim().replace(/[^\\p{L}\\p{N}_-]+/gu, "-") || "answers";
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = who + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
keep();
"""

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Statements about images</title>
<style>$style</style>
</head>
<body data-sheet="$sheet">
<header><div>
<h1>$question</h1>
<output id="count">$total statements</output>
<label class="name">Name <input id="rater" autocomplete="off"></label>
<button id="save" type="button">Save answers</button>
</div></header>
<main>
<p class="how">Answer for each statement. On a keyboard, 1 is right, 2 wrong, 3 cannot tell, and the next statement
follows. Answers stay in this browser until they are saved as a CSV file, which is what to send back.</p>
<noscript><p>Saving needs JavaScript. The CSV file that came with this page can be filled in instead.</p></noscript>
$images
</main>
<script>$script</script>
</body>
</html>
""")

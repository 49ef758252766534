// A page of a run that goes on is read again now and then, but not while its reader types.

function follow(ms) {
  setTimeout(() => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) || writing || (noted.size && !notesAddress());
    if (typing || document.hidden) follow(1000);
    else location.reload();
  }, ms);
}

startThemes();
for (const table of document.querySelectorAll("table.sortable")) startSorting(table);
for (const figure of document.querySelectorAll("#overview figure")) figure.append(figureButtons(figure));
for (const wide of document.querySelectorAll("#overview .wide:not(figure .wide)")) {
  const frame = h("div", { class: "frame" });
  wide.replaceWith(frame);
  frame.append(wide, h("div", { class: "actions" }, copyButton(wide)));
}
if (index.kind !== "card") startSamples();
if (index.follows) follow(1000 * index.follows);
showing.then(() => { root.dataset.ready = performance.now().toFixed(0); });

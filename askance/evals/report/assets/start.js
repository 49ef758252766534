startThemes();
for (const table of document.querySelectorAll("table.sortable")) startSorting(table);
if (index.kind !== "card") startSamples();
showing.then(() => { root.dataset.ready = performance.now().toFixed(0); });

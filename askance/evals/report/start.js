startThemes();
for (const table of document.querySelectorAll("table.sortable")) startSorting(table);
if (index.runs.length) startSamples();
root.dataset.ready = performance.now().toFixed(0);

startThemes();
for (const table of document.querySelectorAll("table.sortable")) startSorting(table);
startSamples();
root.dataset.ready = performance.now().toFixed(0);

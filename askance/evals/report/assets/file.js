/** Hands a text to the reader as a file of their own. */
function saveFile(text, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A text as the name of a file, without its ending; nothing where it has no letter. */
function fileName(text) {
  return text.trim().replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 80).replace(/^-+|-+$/g, "");
}

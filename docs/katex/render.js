// Typesets what pymdownx.arithmatex marks, from files of this site alone. KaTeX 0.16.47 (MIT, see LICENSE), with the
// fonts that the pages need.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const source = formula.textContent.trim();
    katex.render(source.slice(2, -2), formula, { displayMode: source.startsWith("\\["), throwOnError: false, strict: false });
  }
});

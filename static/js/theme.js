// Runs before the first paint: a stored choice of light or dark becomes a class on the root element,
// and what needs script (.if-script) shows itself.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage is off: the system's scheme stands */ }
  document.documentElement.dataset.script = "";
  if (chosen === "light" || chosen === "dark") document.documentElement.classList.add(chosen);
})();

// Runs before the first paint: a stored choice of light or dark becomes a class on the root element.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage is off: the system's scheme stands */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.classList.add(chosen);
})();

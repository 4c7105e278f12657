// Conveniences on top of pages that work without script: keyboard, sheet, copy buttons, colour scheme.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  function dress(root) {
    for (const button of $$("[data-copy], [data-theme]", root)) button.hidden = false;
  }

  // --- sheet: the confirmation page, shown at the side of the page that asked for it --------------------------
  async function openSheet(url) {
    const dialog = $("#side");
    const answer = await fetch(url, { credentials: "same-origin", headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const sheet = page.getElementById("sheet");
    if (!answer.ok || !sheet) { location.assign(url); return; }
    dialog.setAttribute("aria-labelledby", "sheet-title");
    dialog.replaceChildren(document.importNode(sheet, true));
    dress(dialog);
    dialog.showModal();
    ($("[data-focus]", dialog) ?? $("#sheet-title", dialog)).focus();
  }

  function visible(selector) {
    return $$(selector).find((element) => element.checkVisibility() && !element.hasAttribute("aria-disabled"));
  }

  // --- rows ---------------------------------------------------------------------------------------------------
  function move(step) {
    const rows = $$("[data-row]").filter((row) => row.checkVisibility());
    if (!rows.length) { visible(step > 0 ? "[data-next]" : "[data-previous]")?.click(); return; }
    const at = rows.findIndex((row) => row.classList.contains("here") || row.contains(document.activeElement));
    const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
    for (const row of rows) row.classList.toggle("here", row === next);
    $("[data-open]", next)?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  function claim() {
    const row = $("[data-row].here");
    const button = row ? $("[data-verb=claim]", row) : visible("[data-verb=claim]");
    button?.click();
  }

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    c: claim,
    e: () => visible("[data-recommended]")?.click(),
    "/": () => visible("[data-search]")?.focus(),
    "?": () => $("#keys")?.showModal(),
  };

  function typing(target) {
    return target.closest?.("input, textarea, select, dialog, [contenteditable]");
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target)) return;
    const here = $("[data-row].here");
    if (event.key === "Enter" && here && !event.target.closest("a, button, summary")) {
      $("[data-open]", here)?.click();
      return;
    }
    const act = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });

  document.addEventListener("click", (event) => {
    const target = event.target;
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    const sheet = target.closest("a[data-sheet]");
    if (sheet && plain) { event.preventDefault(); openSheet(sheet.href).catch(() => location.assign(sheet.href)); return; }
    if (target.closest("[aria-disabled]")) { event.preventDefault(); return; }
    const close = target.closest("[data-close]");
    const dialog = close?.closest("dialog");
    if (dialog) { event.preventDefault(); dialog.close(); return; }
    if (target.closest("[data-keys]")) { $("#keys")?.showModal(); return; }
    const copy = target.closest("[data-copy]");
    if (copy) { copyText(copy); return; }
    const theme = target.closest("[data-theme]");
    if (theme) wear(theme.dataset.theme);
  });

  async function copyText(button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    const said = $("#said");
    if (said) said.textContent = "Copied";
  }

  function wear(scheme) {
    document.documentElement.classList.remove("light", "dark");
    if (scheme) document.documentElement.classList.add(scheme);
    try {
      if (scheme) localStorage.setItem("theme", scheme);
      else localStorage.removeItem("theme");
    } catch { /* storage is off: the choice holds for this page */ }
    for (const button of $$("[data-theme]")) button.setAttribute("aria-pressed", String(button.dataset.theme === scheme));
  }

  document.addEventListener("htmx:afterSwap", () => dress(document));
  dress(document);
  const worn = ["light", "dark"].find((scheme) => document.documentElement.classList.contains(scheme)) ?? "";
  for (const button of $$("[data-theme]")) button.setAttribute("aria-pressed", String(button.dataset.theme === worn));
  $("[data-focus]")?.focus();
})();

// Conveniences on top of pages that work without script: keyboard, sheet, copy buttons, colour scheme.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  function dress(root) {
    for (const button of $$("[data-copy], [data-copy-from], [data-theme]", root)) button.hidden = false;
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

  // --- what a key did, where it did nothing that can be seen -----------------------------------------------------
  let hush = 0;
  function say(text) {
    const said = $("#said");
    if (!said) return;
    said.textContent = text;
    clearTimeout(hush);
    hush = setTimeout(() => { said.textContent = ""; }, 6000);
  }

  // --- rows ---------------------------------------------------------------------------------------------------
  const rowsShown = () => $$("[data-row]").filter((row) => row.checkVisibility());
  const rowHere = () => $("[data-row].here") ?? document.activeElement?.closest?.("[data-row]");

  function stand(row) {
    for (const other of rowsShown()) other.classList.toggle("here", other === row);
    $("[data-open]", row)?.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function move(step) {
    const rows = rowsShown();
    if (rows.length) {
      const at = rows.indexOf(rowHere());
      stand(rows[Math.min(Math.max(at + step, 0), rows.length - 1)]);
      return;
    }
    const neighbour = visible(step > 0 ? "[data-next]" : "[data-previous]");
    if (neighbour) neighbour.click();
    else say(step > 0 ? "There is no next one here." : "There is no previous one here.");
  }

  function unfold(row) {
    const toggle = row?.closest("tbody") && $(".toggle", row.closest("tbody"));
    if (toggle) location.assign(`${toggle.href}#${toggle.closest("tbody").id}`);
    else say(rowsShown().length ? "Choose a row first, with J or K." : "Nothing opens here.");
  }

  function claim() {
    const row = rowHere();
    if (row) {
      const button = $("[data-verb=claim]", row);
      if (button) button.click();
      else if (row.dataset.noClaim) say(row.dataset.noClaim);
      else if ("several" in row.dataset) unfold(row);
      else say("Nothing to claim in this row.");
      return;
    }
    if (rowsShown().length) { say("Choose a row first, with J or K."); return; }
    const button = visible("[data-verb=claim]");
    if (button) button.click();
    else say($("#why-claim")?.textContent ?? "Nothing to claim on this page.");
  }

  function recommended() {
    const button = visible("[data-recommended]");
    if (button) button.click();
    else say($("#why-recommended")?.textContent ?? "No action is recommended on this page.");
  }

  function choose() {
    const box = rowHere() && $("[data-choose]", rowHere());
    if (box) box.click();
    else say($("[data-choose]") ? "Choose a row first, with J or K." : "Nothing can be chosen here.");
  }

  function search() {
    const field = visible("[data-search]");
    if (field) field.focus();
    else say("Nothing to look up on this page.");
  }

  // G and then the key of a page, within a moment.
  let going = 0;
  function goTo(key) {
    clearTimeout(going);
    going = 0;
    const link = $(`[data-go="${CSS.escape(key)}"]`);
    if (link) link.click();
    else say("No page has this key. Press ? for the list.");
  }

  function closeMenus() {
    for (const menu of $$("details.switch[open], details.about[open]")) {
      menu.open = false;
      if (menu.contains(document.activeElement)) $("summary", menu).focus();
    }
  }

  // The list names the keys that do something on this page.
  function showKeys() {
    const list = $("#keys");
    for (const line of $$("[data-needs]", list)) line.hidden = !$(line.dataset.needs);
    list?.showModal();
  }

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    o: () => unfold(rowHere()),
    c: claim,
    e: recommended,
    r: recommended,
    x: choose,
    g: () => { going = setTimeout(() => { going = 0; }, 2000); },
    Escape: closeMenus,
    "/": search,
    "?": showKeys,
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
    if (going) { event.preventDefault(); goTo(event.key.toLowerCase()); return; }
    const act = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
    if (!act) return;
    if (event.key !== "Escape") event.preventDefault();
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
    if (target.closest("[data-keys]")) { showKeys(); return; }
    const copy = target.closest("[data-copy]");
    if (copy) { copyText(copy); return; }
    const fetched = target.closest("[data-copy-from]");
    if (fetched) { copyFrom(fetched).catch(() => location.assign(fetched.dataset.copyFrom)); return; }
    const theme = target.closest("[data-theme]");
    if (theme) wear(theme.dataset.theme);
  });

  async function copyText(button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    say("Copied");
  }

  async function copyFrom(button) {
    const answer = await fetch(button.dataset.copyFrom);
    if (!answer.ok) throw new Error(answer.statusText);
    await navigator.clipboard.writeText(await answer.text());
    say("Copied");
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
  const unfolded = location.hash.startsWith("#group-") && $("[data-row]", document.getElementById(location.hash.slice(1)) ?? document.createElement("i"));
  if (unfolded) stand(unfolded);
  $("[data-focus]")?.focus();
})();

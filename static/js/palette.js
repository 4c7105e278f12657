// The palette (Ctrl K): every page, view and verb that stands on this page as a link or a button, found by typing.
// It owns nothing: choosing a line presses that link or button. A blocked verb is listed with its sentence.
(() => {
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const told = dialog.querySelector("[role=status]");
  let lines = [];
  let at = 0;

  const text = (element) => [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)
    .map((node) => node.textContent.trim()).filter(Boolean).join(" ");
  const sentence = (element) => document.getElementById(element.getAttribute("aria-describedby") ?? "")?.textContent.trim() ?? "";

  function verbs() {
    const buttons = document.querySelectorAll("main [data-verb], main .btn[aria-disabled]");
    return [...buttons].filter((button) => !button.closest("[data-row]")).map((element) => ({
      kind: element.hasAttribute("aria-disabled") ? "Blocked" : "Do", label: text(element), note: sentence(element), element,
    }));
  }

  function places() {
    return [...document.querySelectorAll("[data-place]")].map((element) => ({
      kind: element.dataset.place, label: text(element), note: "", element,
    }));
  }

  function offered() {
    const once = new Map();
    for (const line of [...verbs(), ...places()]) if (!once.has(line.kind + line.label)) once.set(line.kind + line.label, line);
    return [...once.values()];
  }

  function fits(line, typed) {
    const words = `${line.kind} ${line.label}`.toLowerCase();
    return typed.toLowerCase().split(/\s+/).every((word) => words.includes(word));
  }

  function option(line, place) {
    const item = document.createElement("li");
    Object.assign(item, { id: `palette-${place}`, role: "option" });
    item.dataset.line = place;
    item.setAttribute("aria-selected", "false");
    if (line.kind === "Blocked") item.setAttribute("aria-disabled", "true");
    for (const [dress, words] of [["", line.label], ["g s", line.kind], ["under", line.note]]) {
      if (!words) continue;
      const part = document.createElement("span");
      part.className = dress;
      part.textContent = words;
      item.append(part, " ");
    }
    return item;
  }

  function stand(place) {
    at = lines.length ? (place + lines.length) % lines.length : 0;
    for (const item of list.children) item.setAttribute("aria-selected", String(item.id === `palette-${at}`));
    if (lines.length) field.setAttribute("aria-activedescendant", `palette-${at}`);
    else field.removeAttribute("aria-activedescendant");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  }

  function draw() {
    const typed = field.value.trim();
    lines = offered().filter((line) => fits(line, typed));
    if (typed && document.getElementById("q")) lines.push({ kind: "Search", label: typed, note: "" });
    list.replaceChildren(...lines.map(option));
    told.textContent = lines.length === 1 ? "1 line" : `${lines.length} lines`;
    stand(0);
  }

  function choose(place) {
    const line = lines[place];
    if (!line) return;
    if (line.kind === "Blocked") { told.textContent = line.note; return; }
    dialog.close();
    if (line.element) { line.element.click(); return; }
    const search = document.getElementById("q");
    search.value = line.label;
    search.form.requestSubmit();
  }

  function open() {
    if (document.querySelector("dialog[open]")) return;
    field.value = "";
    draw();
    dialog.showModal();
    field.focus();
  }

  const MOVES = { ArrowDown: () => stand(at + 1), ArrowUp: () => stand(at - 1), Enter: () => choose(at) };
  field.addEventListener("input", draw);
  field.addEventListener("keydown", (event) => {
    const act = event.isComposing ? undefined : MOVES[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[data-line]");
    if (item) choose(Number(item.dataset.line));
  });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-palette]")) open(); });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    open();
  });
})();

// Polls the live regions and holds back what would change under a person's hand.
// A region: data-poll="seconds" data-etag="…" hx-get="…" hx-trigger="poll" hx-swap="outerHTML". A 304 changes nothing.
(() => {
  const INTERACTIVE = "a, button, input, select, textarea, summary, [data-row]";
  const asked = new WeakMap();
  let failing = 0;

  const regionOf = (event) => event.detail.elt?.closest?.("[data-poll]");

  function tick() {
    if (document.visibilityState !== "visible" || document.querySelector("dialog[open]")) return;
    for (const region of document.querySelectorAll("[data-poll]")) {
      const every = Number(region.dataset.poll) * 1000;
      const last = asked.get(region);
      if (last === undefined) { asked.set(region, performance.now()); continue; }
      if (performance.now() - last < every) continue;
      asked.set(region, performance.now());
      window.htmx.trigger(region, "poll");
    }
  }

  // Somebody may be about to press, is typing, or has typed something that is not sent yet.
  function inUse(region) {
    const active = document.activeElement;
    if (active && active !== region && region.contains(active) && active.matches(INTERACTIVE)) return true;
    if ([...region.querySelectorAll(":hover")].some((element) => element.matches(INTERACTIVE))) return true;
    return [...region.querySelectorAll("textarea, input:not([type=hidden])")].some((f) => f.value !== f.defaultValue);
  }

  // The session has ended: polling stops, and the page says how to go on.
  function signedOut() {
    const note = document.getElementById("signed-out");
    if (!note) return;
    note.hidden = false;
    note.querySelector("[data-sign-in]").href += `?next=${encodeURIComponent(location.pathname + location.search)}`;
    document.getElementById("stale").hidden = true;
    document.documentElement.dataset.stale = "";
    clearInterval(ticking);
  }

  function stale(isStale) {
    const note = document.getElementById("stale");
    if (!note) return;
    failing = isStale ? failing + 1 : 0;
    if (failing === 1) note.querySelector("[data-since]").textContent = new Date().toLocaleTimeString("en-GB");
    note.hidden = failing < 2;
    if (note.hidden) delete document.documentElement.dataset.stale;
    else document.documentElement.dataset.stale = "";
  }

  document.addEventListener("htmx:configRequest", (event) => {
    const region = regionOf(event);
    if (region?.dataset.etag) event.detail.headers["If-None-Match"] = region.dataset.etag;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const region = regionOf(event);
    if (!region) return;
    const { xhr } = event.detail;
    if (xhr.status === 401) { signedOut(); return; }
    stale(xhr.status >= 400);
    const checked = xhr.getResponseHeader("X-Checked-At");
    if (xhr.status === 304 && checked) {
      for (const place of region.querySelectorAll("[data-checked]")) place.textContent = checked;
    }
    if (xhr.status === 200 && inUse(region)) {
      event.detail.shouldSwap = false;
      for (const link of region.querySelectorAll("[data-held]")) link.hidden = false;
    }
  });
  // A warning in a region that was replaced is not read out where it stands; it is repeated in the page's own status.
  let warned = document.querySelector("[data-say]")?.textContent ?? "";
  document.addEventListener("htmx:afterSwap", () => {
    const warning = document.querySelector("[data-say]")?.textContent ?? "";
    const said = document.getElementById("said");
    if (said && warning && warning !== warned) said.textContent = warning;
    warned = warning;
  });
  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => { if (regionOf(event)) stale(true); });
  }
  // --- presence: colleagues see who looks at a task, and who has one of its sheets open ------------------------
  const BEAT = 10_000;
  let told = "";
  let toldAt = 0;

  function here() {
    const sheet = document.querySelector("#side[open] #sheet[data-here], main #sheet[data-here]");
    const place = sheet ?? document.querySelector("[data-here]");
    if (!place?.dataset.here) return null;
    return { url: place.dataset.here, doing: sheet ? "deciding" : "looking", verb: sheet?.dataset.deciding ?? "" };
  }

  async function beat() {
    const place = document.visibilityState === "visible" ? here() : null;
    const token = document.querySelector("[name=csrfmiddlewaretoken]")?.value;
    const what = JSON.stringify(place);
    if (!place || !token || (what === told && performance.now() - toldAt < BEAT)) return;
    told = what;
    toldAt = performance.now();
    const { url, ...body } = place;
    const headers = { "X-CSRFToken": token, "HX-Request": "true" };
    await fetch(url, { method: "POST", credentials: "same-origin", headers, body: new URLSearchParams(body) });
  }

  // A beat that is lost is silence, and silence ends by itself: the next one tells it again.
  setInterval(() => { beat().catch(() => { told = ""; }); }, 1000);
  document.addEventListener("visibilitychange", tick);
  const ticking = setInterval(tick, 250);
})();

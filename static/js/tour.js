// The tour: each step is a popover beside the part that it speaks of (placed by CSS); a part that is not there is left out.
(() => {
  const steps = [...document.querySelectorAll("[data-tour]")]
    .filter((step) => document.querySelector(`[data-part="${step.dataset.tour}"]`)?.checkVisibility());
  let at = 0;

  function show(place, focus) {
    steps[at]?.hidePopover();
    at = place % steps.length;
    steps[at].querySelector("[data-count]").textContent = `${at + 1} of ${steps.length}`;
    steps[at].showPopover();
    if (focus) steps[at].querySelector("[data-tour-next]").focus();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-tour-next]")) show(at + 1, true);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) steps[at]?.hidePopover();
  });
  if (steps.length) show(0, false);
})();

"use strict";
// Without this script every pair is a number to type. With it, it is a slider, which counts once it has been touched.
(() => {
  const missing = document.getElementById("missing");
  if (missing) missing.focus();
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  const place = document.querySelector(".sliders");
  if (!place) return;
  const words = place.dataset;
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (slot, name) => (name in values ? values[name] : slot));
  for (const pair of place.querySelectorAll(".pair")) {
    const number = pair.querySelector('input[type="number"]');
    const { left, right } = pair.dataset;
    const slider = document.createElement("input");
    slider.type = "range";
    slider.min = 0;
    slider.max = 100;
    slider.step = 1;
    slider.value = number.value === "" ? 50 : number.value;
    slider.setAttribute("aria-label", pair.dataset.label);
    const wanting = pair.classList.contains("wanting");
    const say = () => {
      const value = Number(slider.value), answered = number.value !== "";
      const text = !answered ? words.notYet : value < 50 ? fill(words.left, { value: (50 - value) * 2, left, right }) : value > 50 ? fill(words.right, { value: (value - 50) * 2, left, right }) : fill(words.middle, { left, right });
      slider.setAttribute("aria-valuetext", text);
      slider.title = answered ? text : "";
      pair.classList.toggle("answered", answered);
      pair.classList.toggle("wanting", wanting && !answered);
    };
    const answer = () => {
      number.value = slider.value;
      say();
    };
    // A finger that scrolls the page comes down on sliders too, and moves them: that is taken back.
    let before = ["50", ""], scrolling = false;
    const takeBack = () => {
      [slider.value, number.value] = before;
      say();
    };
    slider.addEventListener("pointerdown", () => { before = [slider.value, number.value]; scrolling = false; });
    slider.addEventListener("pointercancel", () => { scrolling = true; takeBack(); });
    slider.addEventListener("input", () => { if (scrolling) takeBack(); else answer(); });
    // Pressed and released on the slider, so that the middle can be chosen where it stands.
    slider.addEventListener("click", answer);
    slider.addEventListener("keydown", (event) => {
      scrolling = false;
      if (event.key === "Enter" || event.key === " ") { answer(); event.preventDefault(); }
      if (/^(Arrow|Page|Home|End)/.test(event.key)) requestAnimationFrame(answer);
    });
    number.hidden = true;
    number.after(slider);
    say();
  }
  let sent = false;
  document.getElementById("questions").addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
    setTimeout(() => { sent = false; }, 5000); // the next page did not come: it may be tried again
  });
})();

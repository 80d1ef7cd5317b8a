// A flame graph in a browser: a click zooms, Ctrl-F marks the names that match a regular expression, and the
// line below has the frame under the pointer.
//
// SPDX-License-Identifier: MIT
"use strict";
{
  const CHARACTER = 6.6; // pixels; flamegraph.c has it, too
  const part = (name) => document.getElementById(name);
  const frames = Array.from(document.querySelectorAll("#frames > g"), (group) => {
    const [title, rect, text] = group.children;
    const [name, values] = title.textContent.split("\n");
    const { start, total, depth } = group.dataset;
    return { group, rect, text, name, values, start: +start, total: +total, depth: +depth };
  });
  const all = frames[0];
  const left = +all.rect.getAttribute("x");
  const width = +all.rect.getAttribute("width");
  const frame_of = (event) => frames.find((frame) => frame.group === event.target.closest("g.f"));

  const fitting = (name, pixels) => {
    const letters = Array.from(name);
    const room = Math.floor((pixels - 4) / CHARACTER);
    if (room < 3) return "";
    return letters.length <= room ? name : letters.slice(0, room - 2).join("") + "..";
  };

  const zoom = (to) => {
    for (const frame of frames) {
      const end = frame.start + frame.total;
      const is_around = frame.depth < to.depth && frame.start <= to.start && end >= to.start + to.total;
      const is_within = frame.depth >= to.depth && frame.start >= to.start && end <= to.start + to.total;
      const x = left + (is_around ? 0 : ((frame.start - to.start) / to.total) * width);
      const pixels = is_around ? width : (frame.total / to.total) * width;
      frame.group.classList.toggle("hidden", !is_around && !is_within);
      frame.group.classList.toggle("around", is_around);
      if (!is_around && !is_within) continue;
      frame.rect.setAttribute("x", x);
      frame.rect.setAttribute("width", pixels);
      frame.text.setAttribute("x", x + 3);
      frame.text.textContent = fitting(frame.name, pixels);
    }
    part("reset").classList.toggle("hidden", to === all);
  };

  // A frame within another one that matches is a part of it, and counts once.
  const search = (wanted) => {
    let pattern;
    let sum = 0;
    let end = 0;
    try {
      pattern = wanted && new RegExp(wanted);
    } catch (error) {
      part("matched").textContent = "not a regular expression";
      return;
    }
    for (const frame of frames) frame.group.classList.toggle("match", Boolean(pattern) && pattern.test(frame.name));
    const matches = frames.filter((frame) => frame.group.classList.contains("match"));
    for (const frame of matches.sort((one, other) => one.start - other.start || other.total - one.total)) {
      if (frame.start < end) continue;
      sum += frame.total;
      end = frame.start + frame.total;
    }
    part("matched").textContent = pattern ? "Matched: " + ((100 * sum) / all.total).toFixed(2) + " %" : " ";
    part("search").textContent = pattern ? "Reset search" : "Search";
  };

  const ask = () => {
    const wanted = prompt("A regular expression for names", "");
    if (wanted !== null) search(wanted);
  };

  part("frames").addEventListener("click", (event) => zoom(frame_of(event) || all));
  part("frames").addEventListener("mouseover", (event) => {
    const frame = frame_of(event);
    part("details").textContent = frame ? frame.name + ": " + frame.values : " ";
  });
  part("frames").addEventListener("mouseleave", () => (part("details").textContent = " "));
  part("reset").addEventListener("click", () => zoom(all));
  part("search").addEventListener("click", () => (part("search").textContent === "Search" ? ask() : search("")));
  addEventListener("keydown", (event) => {
    if (event.key !== "F3" && !((event.ctrlKey || event.metaKey) && event.key === "f")) return;
    event.preventDefault();
    ask();
  });
}

"use strict";
(() => {
  const holder = document.getElementById("k-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const slider = document.getElementById("k");
  const words = document.getElementById("k-words");
  const largest = Math.max(1e-9, ...data.steps.flatMap((step) => step.tops.flat())
    .map((entry) => Math.abs(entry[2] || 0)).filter((weight) => weight < 1e9));

  const made = (tag, text, kind) => {  // text is only ever text
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };

  const bar = (weight) => {
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const inside = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    picture.setAttribute("aria-hidden", "true");
    inside.setAttribute("height", "4");
    inside.setAttribute("width", `${100 * Math.min(1, Math.abs(weight) / largest)}%`);
    picture.append(inside);
    return picture;
  };

  const entry = ([name, said, weight]) => {
    const line = made("li");
    line.append(made("span", data.names[name], "name"));
    if (said !== undefined) line.append(made("span", said, "weight"), bar(weight));
    return line;
  };

  const listed = (top, number) => {
    const part = made("div", undefined, "words-of");
    const list = made("ol");
    list.append(...top.map(entry));
    part.append(made("h3", data.classes[number]), list);
    if (!top.length) part.append(made("p", "no feature speaks for it"));
    return part;
  };

  const show = () => {
    const step = data.steps[Number(slider.value)];
    slider.setAttribute("aria-valuetext", `${step.k} features`);
    document.getElementById("k-out").textContent = step.k;
    document.getElementById("k-said").textContent = step.said;
    words.replaceChildren(...step.tops.map(listed));
  };

  slider.addEventListener("input", show);
  document.getElementById("k-choose").hidden = false;
  show();
})();

"use strict";
(() => {
  const all = (root, selector) => Array.from(root.querySelectorAll(selector));
  const key = request => request.session_id + "-" + request.request_id;
  const parts = ["busy_time", "wait_input_time", "wait_output_time"];
  let renewing = false;
  let due = false;

  // Replaces the content by what the server says now.
  async function renew() {
    if (renewing) { due = true; return; }
    renewing = true;
    due = false;
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const content = page.getElementById("content");
        if (content) document.getElementById("content").replaceWith(content);
      }
    } catch (error) {
      // The server is gone; the events come back when it does.
    }
    setTimeout(() => { renewing = false; if (due) renew(); }, 1000);
  }

  function update(element, request) {
    element.querySelector("progress").value = request.percent_complete;
    element.querySelector(".request-text").textContent = request.shown;
    for (const stage of all(element, ".stage")) {
      const counters = (request.stages || {})[stage.dataset.stage];
      if (!counters) continue;
      const times = parts.map(part => counters[part] || 0);
      const whole = Math.max(1, times[0] + times[1] + times[2]);
      let x = 0;
      all(stage, "rect:not(.idle)").forEach((rect, index) => {
        const width = times[index] * 100 / whole;
        rect.setAttribute("x", x.toFixed(2));
        rect.setAttribute("width", width.toFixed(2));
        x += width;
      });
      stage.querySelector(".share").textContent = (times[0] * 100 / whole).toFixed(0) + " %";
    }
  }

  const events = new EventSource("events");
  events.onmessage = event => {
    const requests = JSON.parse(event.data).filter(request => typeof request.percent_complete === "number");
    const shown = new Map(all(document, ".request").map(element => [element.dataset.request, element]));
    const isSame = requests.length === shown.size && requests.every(request => {
      const element = shown.get(key(request));
      return element && Boolean(request.stages) === Boolean(element.querySelector(".stages"));
    });
    if (!isSame) return renew();
    for (const request of requests) update(shown.get(key(request)), request);
  };
  setInterval(renew, 30000);
})();

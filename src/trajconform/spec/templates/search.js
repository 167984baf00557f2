// Filters the clauses as one types: every word must occur in the identifier, the role, the level or the statement.
(() => {
  const box = document.getElementById("q");
  const hits = document.getElementById("hits");
  const haystack = CLAUSES.map((c) => [c.id, c.role, c.level, c.text, c.in].join(" ").toLowerCase());
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    hits.replaceChildren();
    hits.hidden = words.length === 0;
    if (hits.hidden) return;
    let shown = 0;
    for (let i = 0; i < CLAUSES.length && shown < 40; i += 1) {
      if (!words.every((word) => haystack[i].includes(word))) continue;
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = CLAUSES[i].at;
      link.textContent = CLAUSES[i].id;
      const text = document.createElement("span");
      text.textContent = ` ${CLAUSES[i].text}`;
      item.append(link, text);
      hits.append(item);
      shown += 1;
    }
    if (shown === 0) {
      const none = document.createElement("li");
      none.textContent = "No clause has all these words.";
      hits.append(none);
    }
  };
  box.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape" && document.activeElement === box) {
      box.value = "";
      show();
    }
  });
})();

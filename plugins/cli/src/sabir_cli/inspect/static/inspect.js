"use strict";
// Keys j and k, copying messages, and rendering again when a setting changes. Without this script the page still works.
(() => {
  const status = document.getElementById("status");
  const say = (text) => { status.textContent = text; };

  // Keys: the next and the previous message, the timeline's cards or the comparison's rows.
  const stops = () => [...document.querySelectorAll("article[id]")];
  const isTyping = (target) => target instanceof Element && target.closest("input, select, textarea, [contenteditable]");
  const current = () => {
    const active = document.activeElement && document.activeElement.closest("article[id]");
    if (active) return active;
    return location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  };
  const move = (step) => {
    const all = stops();
    const here = current();
    const at = here ? all.indexOf(here.closest("article[id]") || here) : -1;
    const next = at < 0 ? (step > 0 ? 0 : -1) : at + step;
    if (next >= 0 && next < all.length) {
      all[next].focus({ preventScroll: true });
      all[next].scrollIntoView({ block: "start" });
      history.replaceState(null, "", "#" + all[next].id);
      return;
    }
    const link = at < 0 ? null : document.querySelector(step > 0 ? "a[data-next]" : "a[data-previous]");
    if (link) link.click();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
    if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else return;
    event.preventDefault();
  });

  // Copying: the message's JSON, with the data of media put back in place of their placeholders.
  const withMedia = (text) => text.replace(/@medium-(\d+-\d+)@/g, (placeholder, key) => {
    const medium = document.querySelector(`[data-medium="${key}"]`);
    const address = medium && (medium.getAttribute("src") || medium.getAttribute("href"));
    return address ? medium.dataset.header + address.slice(address.indexOf(",") + 1) : placeholder;
  });
  const constants = { true: "True", false: "False", null: "None" };
  const asPython = (text) => {
    const pairs = /\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})/g;
    const joined = (whole, high, low) => {
      const point = 0x10000 + ((parseInt(high, 16) - 0xd800) << 10) + (parseInt(low, 16) - 0xdc00);
      return "\\U" + point.toString(16).padStart(8, "0");
    };
    const tokens = /"(?:[^"\\]|\\.)*"|\btrue\b|\bfalse\b|\bnull\b/g;
    const literal = text.replace(tokens, (token) => constants[token] || token.replace(pairs, joined));
    return `import sabir\n\nmessage = sabir.Message.model_validate(${literal})\n`;
  };
  const write = async (text) => {
    if (navigator.clipboard && window.isSecureContext) {
      try {
        await navigator.clipboard.writeText(text);
        return true;
      } catch (error) { /* not permitted: the older way follows */ }
    }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  };
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element && event.target.closest("button[data-copy]");
    if (!button) return;
    const text = withMedia(button.parentElement.querySelector("template").content.textContent);
    const copied = await write(button.dataset.copy === "python" ? asPython(text) : text);
    button.focus();
    say(copied ? `Copied as ${button.textContent}` : "The browser did not allow copying");
    setTimeout(() => say(""), 2500);
  });

  // A changed setting is rendered at once.
  const form = document.querySelector("form.settings");
  if (form) form.addEventListener("change", () => {
    for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
    form.submit();
  });

  // A link to a message opens what hides it.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target) target.focus({ preventScroll: true });
  };
  addEventListener("hashchange", reveal);
  reveal();
})();

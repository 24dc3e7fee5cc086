// A button on every block of code that copies it.
addEventListener("DOMContentLoaded", () => {
  if (!navigator.clipboard) return;  // a page that was not loaded from a file, https or localhost
  for (const block of document.querySelectorAll(".highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }
});

/* --- dark or light, and paper ---------------------------------------------------------------- */

const root = document.documentElement;
root.classList.add("js");
const button = document.getElementById("theme"),
  dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
const name = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Show the page ${dark() ? "light" : "dark"}`); };
button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
name();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(node => { node.open = true; }));

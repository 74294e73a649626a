/* --- dark or light, and paper ---------------------------------------------------------------- */

const root = document.documentElement;
root.classList.add("js");
const button = document.getElementById("theme"),
  dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
const name = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Show the page ${dark() ? "light" : "dark"}`); };
button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
name();
let unfolded = [];
const unfold = open => unfolded.forEach(node => { node.open = open; });
addEventListener("beforeprint", () => { unfolded = document.querySelectorAll("details:not([open])"); unfold(true); });
addEventListener("afterprint", () => unfold(false));

/* Tables that do not fit say so where there is no pointer to try. */
const sizes = new ResizeObserver(entries => entries.forEach(({ target }) => target.classList.toggle("rl-wide", target.scrollWidth > target.clientWidth + 1)));
document.querySelectorAll(".rl-scroll").forEach(node => sizes.observe(node));

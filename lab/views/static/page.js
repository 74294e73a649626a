/* --- the exported page ----------------------------------------------------------------------- */

const data = JSON.parse(document.getElementById("data").textContent);
mount(document, data, data.state);

// Runs before the first paint, so that a page that is to be dark never flashes light. See src/app/theme.ts.
var choice;
try {
  choice = JSON.parse(localStorage.getItem(`limelight${location.pathname.replace(/\/[^/]*$/, "")}.theme`));
} catch (error) {
  // A private window may refuse: then the system decides.
}
var isDark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = isDark ? "dark" : "light";

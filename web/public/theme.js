// Applies the theme before the first paint, so that a dark page does not flash light. See src/app/theme.ts.
var choice;
try {
  choice = JSON.parse(localStorage.getItem(`limelight${location.pathname.replace(/\/[^/]*$/, "")}.theme`));
} catch (error) {
  // A private window may refuse access to the storage; then the theme is the system's.
}
var isDark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = isDark ? "dark" : "light";

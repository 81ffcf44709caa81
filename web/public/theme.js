// Runs before the first paint, so that a page that is set to dark never flashes light. See src/app/theme.ts.
try {
  var choice = JSON.parse(localStorage.getItem("limelight.theme"));
  if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
} catch (error) {
  // A private window may refuse: then the system decides.
}

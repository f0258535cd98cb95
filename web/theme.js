// Light or dark: as the system says, until the reader says otherwise. Nothing is stored.

const ORDER = ["system", "light", "dark"];

export function themeButton(button) {
  let now = 0;
  button.addEventListener("click", () => {
    now = (now + 1) % ORDER.length;
    const theme = ORDER[now];
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Colours: ${theme}`;
    button.setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}`);
  });
}

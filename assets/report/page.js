"use strict";
(() => {
  const rowsOf = JSON.parse(document.getElementById("rows").textContent);
  const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  // A rounded number has its displayed text, its value, and all its digits.
  const text = (cell) => cell === null ? "—" : Array.isArray(cell) ? cell[0] : typeof cell === "number" ? grouped(cell) : cell;

  // The number in a cell, for sorting: "12,345 B", "-3.20 %", "1.5e-9"; cells without a number come last.
  const number = (cell) => {
    if (Array.isArray(cell)) return cell[1];
    if (typeof cell === "number") return cell;
    const found = /[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?/i.exec(cell ?? "");
    return found ? Number(found[0].replaceAll(",", "")) : NaN;
  };
  const compared = (kind) => (a, b) => {
    if (kind === "text") return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
    let [x, y] = [number(a), number(b)];
    if (kind === "size") [x, y] = [Math.abs(x), Math.abs(y)];
    return x - y;
  };

  const cellOf = (cell) => cell.dataset.v === undefined
    ? cell.textContent
    : [cell.textContent, Number(cell.dataset.v), cell.title];

  class SortableTable {
    constructor(root) {
      this.root = root;
      this.body = root.querySelector("tbody");
      this.heads = [...root.querySelectorAll("thead th")];
      this.more = root.querySelector(".more");
      const lines = [...this.body.rows];
      const all = rowsOf[root.dataset.table];
      // Rows in the text of the page keep their elements; others are created when they are shown.
      this.rows = all
        ? all.map((cells, at) => ({ cells, line: lines[at] ?? null }))
        : lines.map((line) => ({ cells: [...line.cells].map(cellOf), line }));
      this.first = lines.length;
      this.isWhole = !all;
      this.order = this.rows;
      this.wanted = "";
      this.heads.forEach((head, at) => this.makeSortable(head, at));
      if (this.rows.length > 20) this.makeFilter();
      const button = this.more?.querySelector("button");
      if (button) {
        button.hidden = false;
        button.addEventListener("click", () => { this.isWhole = true; this.show(); });
      }
    }

    makeSortable(head, at) {
      if (!head.textContent.trim() || this.rows.length < 2) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const isText = head.dataset.kind === "text";
        // Numbers begin with the largest.
        const next = was === "none" ? (isText ? "ascending" : "descending")
          : was === "ascending" ? "descending" : "ascending";
        this.heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        this.sort(at, head.dataset.kind, next === "descending");
      });
    }

    sort(at, kind, isFalling) {
      const compare = compared(kind);
      const isMissing = (row) => kind === "text" ? !row.cells[at] : Number.isNaN(number(row.cells[at]));
      this.order = [...this.rows].sort((a, b) => {
        const missing = isMissing(a) - isMissing(b);
        if (missing || isMissing(a)) return missing;
        return isFalling ? compare(b.cells[at], a.cells[at]) : compare(a.cells[at], b.cells[at]);
      });
      this.show();
    }

    makeFilter() {
      const tools = this.root.querySelector(".tools");
      tools.hidden = false;
      this.hits = tools.querySelector(".hits");
      tools.querySelector("input").addEventListener("input", (event) => {
        this.wanted = event.target.value.trim().toLowerCase();
        this.show();
      });
    }

    line(row) {
      if (row.line) return row.line;
      const line = document.createElement("tr");
      row.cells.forEach((cell, at) => {
        const element = document.createElement(at === 0 ? "th" : "td");
        if (at === 0) element.scope = "row";
        if (this.heads[at].dataset.kind !== "text") element.className = "n";
        element.textContent = text(cell);
        if (Array.isArray(cell)) element.title = cell[2];
        line.append(element);
      });
      row.line = line;
      return line;
    }

    show() {
      const holds = (row) => row.cells.some((cell) => text(cell).toLowerCase().includes(this.wanted));
      const found = this.wanted ? this.order.filter(holds) : this.order;
      const shown = this.isWhole ? found : found.slice(0, this.first);
      this.body.replaceChildren(...shown.map((row) => this.line(row)));
      if (this.hits) this.hits.textContent = this.wanted ? `${grouped(found.length)} of ${grouped(this.rows.length)} rows` : "";
      if (this.more) {
        this.more.hidden = shown.length === found.length;
        this.more.querySelector("span").textContent = `${grouped(shown.length)} of ${grouped(found.length)} rows.`;
        this.more.querySelector("button").textContent = `Show all ${grouped(found.length)} rows`;
      }
    }
  }
  document.querySelectorAll("[data-table]").forEach((root) => new SortableTable(root));

  // Shows text that does not fit into a cell as a tooltip.
  document.addEventListener("mouseover", (event) => {
    const cell = event.target.closest?.("tbody th, tbody td");
    if (cell && !cell.title && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent;
  });

  const theme = document.getElementById("theme");
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
  };
  theme.hidden = false;
  theme.removeAttribute("aria-pressed");
  label();
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);

  // Folded parts are opened for printing.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();

// The page: which view stands at which address, and what is told above all of them.
import { button, download, el } from "./dom.js";
import { contradictions, forgetContradictions } from "./kept.js";
import { failure } from "./steps.js";
import * as analysis from "./analysis.js";
import * as budgets from "./budgets.js";
import * as cosignatures from "./cosignatures.js";
import * as exchange from "./exchange.js";
import * as exchanges from "./exchanges.js";
import * as findings from "./findings.js";
import * as keys from "./keys-view.js";
import * as overview from "./overview.js";
import * as receipt from "./receipt.js";
import * as session from "./session.js";
import { notSignedIn } from "./sign-in.js";
import * as signInLink from "./sign-in-link.js";
import * as tenants from "./tenants.js";
import * as tree from "./tree.js";

const VIEWS = {
  "": { title: "Overview", view: overview.view },
  overview: { title: "Overview", view: overview.view },
  findings: { title: "Findings", view: findings.view },
  tree: { title: "Tree", view: tree.view },
  receipt: { title: "Receipt", view: receipt.view },
  exchanges: { title: "Exchanges", view: exchanges.view },
  exchange: { title: "Exchange", view: exchange.view },
  session: { title: "Session", view: session.view },
  tenants: { title: "Tenants", view: tenants.view },
  budgets: { title: "Budgets", view: budgets.view },
  analysis: { title: "Analysis", view: analysis.view },
  witnesses: { title: "Witnesses", view: cosignatures.view },
  keys: { title: "Keys", view: keys.view },
  "not-signed-in": { title: "Sign in", view: notSignedIn },
  "sign-in": { title: "Sign in", view: signInLink.view },
};
const main = document.getElementById("main");
const alarms = document.getElementById("alarms");
let shown = 0;

async function show(byReader) {
  const [, name = "", argument = ""] = location.hash.split("/");
  const { title, view } = VIEWS[name] ?? VIEWS[""];
  const turn = ++shown;
  document.title = `${title} – Proofgate auditor`;
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href") === `#/${VIEWS[name] && name !== "overview" ? name : ""}`;
    if (own) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.setAttribute("aria-busy", "true");
  let content;
  try {
    content = await view(argument);
  } catch (error) {
    content = [el("h1", { tabindex: "-1" }, title), failure(error)];
  }
  // Somebody has gone on to another view meanwhile.
  if (turn !== shown) return;
  main.replaceChildren(...content.filter(Boolean));
  main.removeAttribute("aria-busy");
  tellContradictions();
  if (byReader) (main.querySelector("[data-focus]") ?? main.querySelector("h1"))?.focus();
}

function tellContradictions() {
  const all = contradictions();
  // An alert that is replaced is read out once more.
  if (alarms.children.length === (all.length > 0 ? all.length + 1 : 0)) return;
  const told = all.map((found) =>
    el(
      "section",
      { class: "alarm" },
      el("h2", {}, "The auditor contradicts a checkpoint that this browser stored"),
      el("p", {}, `${found.message} `, el("code", {}, String(found.code))),
      el(
        "p",
        {},
        found.code === "equivocation"
          ? "Anyone with the key can verify the contradiction from the two checkpoints. Keep them and share them."
          : "Both checkpoints are signed, but the auditor does not prove that they are consistent. Keep them and ask its administrator.",
      ),
      button("Download both checkpoints", () => download("contradiction.checkpoints", `${found.older}\n${found.newer}`)),
    ),
  );
  if (told.length > 0) {
    told.push(
      button("Dismiss", () => {
        forgetContradictions();
        tellContradictions();
        main.focus();
      }),
    );
  }
  alarms.replaceChildren(...told);
}

addEventListener("hashchange", () => {
  // The link that skips to the content is no view.
  if (location.hash === "#main") main.focus();
  else show(true);
});
document.addEventListener("proofgate-contradiction", tellContradictions);
show(false);

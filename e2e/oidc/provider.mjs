// A small OpenID provider on loopback. Its argument is JSON: the port, the client as the provider registers it, and the
// groups of each person.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import Provider from "oidc-provider";

const FORM = `<!doctype html><html lang="en"><title>Sign in</title><link rel="icon" href="data:,">
<form method="post"><label>Account <input name="login"></label> <button>Sign in</button></form></html>`;
const { port, client, people } = JSON.parse(process.argv[2]);
const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });

const provider = new Provider(`http://localhost:${port}`, {
  clients: [client],
  // Of this scope, claims are in the ID token.
  claims: { openid: ["sub", "preferred_username", "groups"] },
  scopes: ["openid", "profile", "email"],
  cookies: { keys: [randomBytes(32).toString("hex")] },
  jwks: { keys: [{ ...key, use: "sig", alg: "RS256" }] },
  pkce: { required: () => true },
  // The package's own page for development loads fonts from the network.
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, { uid }) => `/sign-in/${uid}` },
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({ sub: name, preferred_username: name, groups: people[name] ?? [] }),
  }),
  // An organisation does not ask its people whether its own application may know them.
  async loadExistingGrant({ oidc }) {
    const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope("openid profile email");
    await grant.save();
    return grant;
  },
});

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith("/sign-in/")) return next();
  if (ctx.method === "GET") {
    ctx.type = "html";
    ctx.body = FORM;
    return;
  }
  const accountId = new URLSearchParams(await text(ctx.req)).get("login");
  // The provider itself answers.
  ctx.respond = false;
  await provider.interactionFinished(ctx.req, ctx.res, { login: { accountId } });
});

provider.listen(port, "localhost", () => console.log("provider ready"));

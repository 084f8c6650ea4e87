"""The proxy that the environment names for the API server."""

from urllib.request import getproxies, proxy_bypass

from yarl import URL


def proxy_from_environment(server: URL) -> str | None:
    """Return the proxy for a server, as `https_proxy` and `no_proxy` have it; None for none."""
    proxies = getproxies()
    host = f"{server.host}:{server.port}"
    return None if proxy_bypass(host) else proxies.get(server.scheme)

"""The proxy for the API server that the environment configures."""

from urllib.request import getproxies, proxy_bypass

from yarl import URL


def proxy_from_environment(server: URL) -> str | None:
    """Return the proxy for a server according to `https_proxy` and `no_proxy`; None if there is none."""
    proxies = getproxies()
    host = f"{server.host}:{server.port}"
    return None if proxy_bypass(host) else proxies.get(server.scheme)

"""An MCP server with one tool. A client starts it and uses its standard streams.

It runs in the environment of `requirements/agents.txt` and imports nothing else, because clients pass it few variables.
"""

from __future__ import annotations

#: The server's name in the clients' settings, and its tool's.
SERVER, TOOL = "lighthouse", "keeper_of"


def keeper_of(light: str) -> str:
    """Says who keeps a light."""
    return f"Ida keeps the light at the {light}"


def main() -> None:
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    server = MCPServer(SERVER)
    # The tool only reads, so no client has to ask the user for permission.
    server.tool(TOOL, annotations=ToolAnnotations(read_only_hint=True))(keeper_of)
    server.run()


if __name__ == "__main__":
    main()

"""CEL rules of the section `cors`."""

#: Rules over several fields of the section.
CORS_RULES = (
    {
        "rule": "self.allowedOrigins.size() == 1 || !self.allowedOrigins.exists(origin, origin == '*')",
        "message": "spec.cors.allowedOrigins: '*' allows every origin, so it must be the only entry",
    },
    {
        "rule": "!self.allowedOrigins.exists(origin, origin.matches('^(http:.*:80|https:.*:443)$'))",
        "message": "spec.cors.allowedOrigins: remove the default port, because browsers leave it out (RFC "
        "6454)",
    },
)

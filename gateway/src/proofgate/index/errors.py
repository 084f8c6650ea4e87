"""Why an index cannot be used or asked."""

from __future__ import annotations


class IndexUnusableError(Exception):
    """Something about an index or a question to it is wrong. `code` is stable and meant for machines.

    `index_missing`, `index_schema`, `index_foreign`, `index_damaged`, `index_busy`, `index_io`: the index.
    `bad_filter`, `bad_cursor`, `cursor_differs`, `cursor_expired`, `day_pruned`,
    `question_too_long`: the question.
    `bad_export`, `export_exists`: an export.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

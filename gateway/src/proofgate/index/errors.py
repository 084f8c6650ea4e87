"""The error of an index that cannot be used or queried."""

from __future__ import annotations


class IndexUnusableError(Exception):
    """An index or a query to it is invalid. `code` is stable and machine-readable.

    `index_missing`, `index_schema`, `index_foreign`, `index_damaged`, `index_busy`, `index_io`: the index.
    `bad_filter`, `bad_cursor`, `cursor_differs`, `cursor_expired`, `day_pruned`,
    `question_too_long`: the question.
    `bad_export`, `export_exists`: an export.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

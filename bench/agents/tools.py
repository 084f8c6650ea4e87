"""The tools that an agent offers its model, with the schemas of their arguments."""

from __future__ import annotations

from typing import Any

_FIELDS: dict[str, dict[str, Any]] = {
    "path": {"type": "string", "description": "The file's path, from the root of the workspace. Links are followed."},
    "pattern": {"type": "string", "description": "A regular expression in the syntax of Rust's regex crate."},
    "glob": {"type": "string", "description": "Only files whose path matches this pattern, such as src/**/*.rs."},
    "content": {"type": "string", "description": "The whole text of the file as it is to be, with its last line feed."},
    "old": {"type": "string", "description": "The text that is replaced. It has to stand in the file exactly once."},
    "new": {"type": "string", "description": "The text that takes its place, in the same indentation."},
    "command": {"type": "string", "description": "The command, as one line for the shell of the workspace."},
    "seconds": {"type": "integer", "minimum": 1, "maximum": 600, "description": "How long it may run, in seconds."},
    "offset": {"type": "integer", "minimum": 0, "description": "The line to begin with, counted from zero."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 2000, "description": "How many lines at most."},
    "recursive": {"type": "boolean", "default": False, "description": "Whether folders inside are listed, too."},
    "mode": {"type": "string", "enum": ["files", "lines", "count"], "description": "What is returned of each match."},
    "branch": {"type": "string", "description": "The name of the branch, without the name of a remote."},
    "title": {"type": "string", "maxLength": 72, "description": "One line in the imperative that says what changes."},
    "body": {"type": "string", "description": "Why it changes, in a few sentences."},
    "paths": {"type": "array", "items": {"type": "string"}, "description": "Files, each from the root."},
    "steps": {
        "type": "array",
        "description": "What is to be done, in order.",
        "items": {
            "type": "object",
            "properties": {
                "what": {"type": "string", "description": "The step, in one sentence."},
                "state": {"type": "string", "enum": ["open", "under_way", "done"]},
            },
            "required": ["what", "state"],
            "additionalProperties": False,
        },
    },
    "question": {"type": "string", "description": "What has to be known before the work can go on."},
    "line": {"type": "integer", "minimum": 1, "description": "The line, counted from one."},
    "column": {"type": "integer", "minimum": 1, "description": "The column in characters, counted from one."},
    "name": {"type": "string", "description": "The name, as it stands in the source."},
    "filter": {"type": "string", "description": "Only tests whose name holds this text."},
}

_TOOLS: tuple[tuple[str, str, str], ...] = (
    ("read_file", "Reads a text file, or some of its lines. Each line comes with its number.", "path offset limit"),
    ("write_file", "Writes a whole file; folders that are missing are made.", "path content"),
    ("edit_file", "Replaces one place in a file and leaves the rest as it is.", "path old new"),
    ("list_folder", "Lists a folder: names, sizes and times of the last change.", "path recursive"),
    ("find_files", "Finds files by a pattern of their path, those changed last first.", "glob limit"),
    ("search_text", "Searches the text of files. Binary files are left out.", "pattern glob mode limit"),
    ("run_command", "Runs a command in the workspace and returns what it prints.", "command seconds"),
    ("run_tests", "Runs the tests of a crate or package and returns those that fail.", "path filter seconds"),
    ("build", "Builds what has changed and returns the errors and warnings.", "path seconds"),
    ("format", "Formats files as the project's own formatter does.", "paths"),
    ("lint", "Runs the project's linters over files.", "paths"),
    ("go_to_definition", "Finds where a name is defined.", "path line column"),
    ("find_references", "Finds every place at which a name is used.", "path line column limit"),
    ("rename_symbol", "Renames a symbol wherever it is used.", "path line column name"),
    ("update_plan", "Keeps the list of steps that the user sees.", "steps"),
    ("ask_user", "Asks the user something that the workspace cannot answer.", "question"),
    ("git_status", "Lists the files that differ from the last commit.", "paths"),
    ("git_diff", "Shows how files differ from the last commit.", "paths limit"),
    ("git_log", "Lists commits, the last one first.", "path limit"),
    ("git_show", "Shows one commit with its changes.", "name limit"),
    ("git_commit", "Commits the named files.", "paths title body"),
    ("git_branch", "Begins a branch at the commit at hand.", "branch"),
    ("read_many", "Reads several text files at once, each with its path above it.", "paths limit"),
    ("outline", "Lists what a source file defines, with the lines.", "path"),
    ("hover", "Tells the type and the documentation of a name.", "path line column"),
    ("coverage", "Tells which lines of a file no test reaches.", "path filter"),
    ("profile", "Runs a benchmark and tells where its time goes.", "name seconds"),
    ("dependencies", "Lists the packages that a crate or package uses, with versions.", "path recursive"),
    ("read_log", "Reads the last lines of a log of the workspace's services.", "name limit"),
    ("describe_table", "Tells the columns of a table in the test database.", "name"),
)

#: The maximum number of tools.
MOST = len(_TOOLS)


def openai(count: int) -> list[dict[str, Any]]:
    """The first `count` tools in the format of chat completions."""
    return [
        {"type": "function", "function": {"name": name, "description": said, "parameters": schema}}
        for name, said, schema in _first(count)
    ]


def anthropic(count: int) -> list[dict[str, Any]]:
    """The first `count` tools in the format of messages."""
    return [{"name": name, "description": said, "input_schema": schema} for name, said, schema in _first(count)]


def _first(count: int) -> list[tuple[str, str, dict[str, Any]]]:
    return [(name, said, _schema(fields.split())) for name, said, fields in _TOOLS[:count]]


def _schema(names: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _FIELDS[name] for name in names},
        "required": names[:1],
        "additionalProperties": False,
    }

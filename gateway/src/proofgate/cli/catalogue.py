"""The list of commands by group. A command's module is imported only when the command is called.

A new command needs a line in `COMMANDS`, and in its module a function `add(command)` that describes
arguments.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command: its group and name, and the function that describes its arguments."""

    path: str
    """The group and the name, for example `ledger fsck`; a command without a group has only a name."""
    add_function: str
    """The function that creates the command's parser, as `module:function`."""
    summary: str
    former_path: str = ""
    """The name of the command in earlier versions. It works for one more version, and help does not list it."""

    @property
    def group(self) -> str:
        """The group; empty for a command without a group."""
        return self.path.rpartition(" ")[0]

    @property
    def name(self) -> str:
        """The name within the group."""
        return self.path.rpartition(" ")[2]


#: The purpose of each group.
GROUPS = {
    "ledger": "prove, check and retain what a ledger contains",
    "policy": "test, list and try the rules of a configuration",
    "keys": "create, rotate and hash keys",
    "gateway": "tools for a gateway: prices, schema, HAProxy sidecar, simulated provider",
    "audit": "audit a ledger from outside, and query, export and restore it",
}

COMMANDS = (
    Command(
        "quickstart",
        "proofgate.quickstart_command:add",
        "create a folder with everything that a worker without Kubernetes needs, and start it",
    ),
    Command(
        "demo-traffic",
        "proofgate.traffic.command:add",
        "send example requests to the gateway of a running quickstart",
    ),
    Command(
        "sign-in-link",
        "proofgate.local.sign_in_link_command:add",
        "print a link that signs in to the explorer of a running quickstart",
    ),
    Command("serve", "proofgate.cli.worker:serve", "run one worker"),
    Command(
        "status",
        "proofgate.status_command:add",
        "show the status of gateways: workers, tenants, logs and conditions",
    ),
    Command(
        "validate",
        "proofgate.cli.worker:validate",
        "check a configuration file and every file that it names, without starting a worker",
    ),
    Command(
        "receipt",
        "proofgate.receipt_command:add",
        "fetch the receipt of your own exchange from a gateway",
    ),
    Command(
        "verify",
        "proofgate.cli.evidence:verify",
        "check a receipt, or one record against its proof, offline",
    ),
    Command(
        "completion",
        "proofgate.cli.completion:add",
        "print the script that completes commands in bash, zsh or fish",
    ),
    Command("ledger fsck", "proofgate.cli.evidence:fsck", "read and check a whole ledger", "fsck"),
    Command(
        "ledger prove",
        "proofgate.cli.evidence:prove",
        "write the records of one exchange with their proofs",
        "prove",
    ),
    Command(
        "ledger reveal",
        "proofgate.cli.evidence:reveal",
        "check that a recorded commitment opens to a body",
        "reveal",
    ),
    Command(
        "ledger consistency",
        "proofgate.cli.evidence:consistency",
        "check that two checkpoints of a log are consistent",
        "consistency",
    ),
    Command(
        "ledger configuration",
        "proofgate.cli.evidence:configuration",
        "print an archived configuration by its digest",
        "configuration",
    ),
    Command(
        "ledger payload", "proofgate.payload_command:add", "show the stored bodies of an exchange", "payload"
    ),
    Command(
        "ledger replay",
        "proofgate.replay.command:add",
        "replay recorded verdicts, or compare them with another policy",
        "replay",
    ),
    Command(
        "ledger statement",
        "proofgate.cose.statement:add",
        "sign a verified checkpoint as a SCITT signed statement",
        "statement",
    ),
    Command(
        "ledger export-leaves",
        "proofgate.cli.evidence:export_leaves",
        "write the leaves of an incarnation to a file, for other tools",
        "export-leaves",
    ),
    Command("ledger hold", "proofgate.keeping.holds:add", "place, list or release legal holds", "hold"),
    Command(
        "ledger prune",
        "proofgate.keeping.pruning:add",
        "remove logs after the end of their retention, and leave tombstones",
        "prune",
    ),
    Command(
        "ledger erase",
        "proofgate.keeping.erasing:add",
        "destroy the salts of an exchange or a tenant",
        "erase",
    ),
    Command(
        "ledger shred",
        "proofgate.keeping.shredding:add",
        "destroy a tenant's shred keys, so that no copy of the ledger reveals its bodies",
        "shred",
    ),
    Command(
        "ledger shred-keys",
        "proofgate.keeping.shred_keys_command:add",
        "list, rotate or remove tenants' shred keys",
        "shred-keys",
    ),
    Command(
        "ledger retention",
        "proofgate.keeping.retention_job:add",
        "carry out a plan of holds and retention",
        "retention",
    ),
    Command(
        "policy test",
        "proofgate.cli.policy:test",
        "run the examples of the configuration's own rules, and samples",
    ),
    Command("policy rules", "proofgate.cli.policy:rules", "list the rules in force"),
    Command("policy check", "proofgate.cli.policy:check", "evaluate a text or a request with the policy"),
    Command(
        "keys generate",
        "proofgate.cli.keys:generate",
        "create a key pair for a ledger, an auditor, a retention job or a witness",
        "keygen",
    ),
    Command(
        "keys rotate",
        "proofgate.key_rotation:add_rotate",
        "rotate the key of a ledger, an auditor or a retention job",
    ),
    Command(
        "keys show",
        "proofgate.key_rotation:add_show",
        "list the keys of a succession, oldest first, and the time until which each key may start logs",
    ),
    Command(
        "keys hash",
        "proofgate.cli.keys:hash_key",
        "read an API key from standard input and print its hash for keyHashes",
        "hash-key",
    ),
    Command(
        "keys auditor-token",
        "proofgate.reading.command:add",
        "print the token that an auditor uses to read workers' folders",
        "auditor-token",
    ),
    Command(
        "gateway prices",
        "proofgate.cli.gateway:prices",
        "list the price that applies to each model of a configuration",
        "prices",
    ),
    Command(
        "gateway schema",
        "proofgate.schema_command:add",
        "print the JSON schema of a configuration file",
        "schema",
    ),
    Command(
        "gateway haproxy-sidecar",
        "proofgate.cli.gateway:haproxy_sidecar",
        "sync the workers, maps, weights and certificate of a running HAProxy",
        "haproxy-sidecar",
    ),
    Command(
        "gateway mock-upstream",
        "proofgate.cli.gateway:mock_upstream",
        "run a simulated provider (OpenAI, Anthropic, Google, Amazon) for demonstrations and tests",
        "mock-upstream",
    ),
    Command(
        "audit run",
        "proofgate.auditor.command:add",
        "audit a ledger continuously, and keep a signed log of its tree heads",
        "auditor",
    ),
    Command(
        "audit index",
        "proofgate.index.command:add_index",
        "create or update an index of a ledger's exchanges",
        "index",
    ),
    Command(
        "audit exchanges",
        "proofgate.index.command:add_exchanges",
        "list exchanges of an index, page by page",
        "exchanges",
    ),
    Command(
        "audit export",
        "proofgate.index.export_command:add_export",
        "export exchanges of an index with their records and proofs",
        "export",
    ),
    Command(
        "audit verify-export",
        "proofgate.index.export_command:add_verify",
        "check an export offline",
        "verify-export",
    ),
    Command(
        "audit access-log",
        "proofgate.index.access_log_command:add",
        "check the access log against the auditor's signed tree heads",
        "access-log",
    ),
    Command(
        "audit end-user",
        "proofgate.index.end_user_command:add",
        "read an end user's name from standard input and print the user's pseudonyms in records",
        "end-user",
    ),
    Command(
        "audit fetch", "proofgate.mirror.fetch_command:add", "restore logs from a mirror", "mirror-fetch"
    ),
    Command(
        "audit witness",
        "proofgate.witness.command:add",
        "cosign checkpoints of append-only logs",
        "witness",
    ),
)

BY_PATH = {command.path: command for command in COMMANDS}
BY_FORMER_PATH = {command.former_path: command for command in COMMANDS if command.former_path}


def commands_in_group(group: str) -> list[Command]:
    """The commands of a group, in the order in which help shows them."""
    return [command for command in COMMANDS if command.group == group]

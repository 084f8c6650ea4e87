// Command verifier checks Proofgate's evidence with two transparency-log libraries that share no code with it, and
// must find what Proofgate's own verifier finds. It is run by CI only.
//
//	verifier proof --vkey VKEY --record FILE PROOFFILE
//	verifier root --leaves FILE
//	verifier consistency --leaves FILE --old N [--new M]
//	verifier proofs < LINES
//	verifier tiles --vkey VKEY --ledger-vkey VKEY URL|DIRECTORY
//	verifier witnessed --policy FILE --entry FILE PROOFFILE
//	verifier agent SOCKET
//
// It exits with 0 when everything holds, 1 when it does not and 2 when it was called wrongly.
package main

import (
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	commands := map[string]func(*flag.FlagSet, []string, io.Writer) error{
		"proof":       proofCommand,
		"root":        rootCommand,
		"consistency": consistencyCommand,
		"proofs":      proofsCommand(stdin),
		"tiles":       tilesCommand,
		"witnessed":   witnessedCommand,
		"agent":       agentCommand(stdin),
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprintln(stderr, "usage: verifier proof|root|consistency|proofs|tiles|witnessed|agent [flags]")
		return 2
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	switch err := commands[args[0]](flags, args[1:], stdout).(type) {
	case nil:
		return 0
	case usageError:
		fmt.Fprintln(stderr, "verifier:", err)
		return 2
	default:
		fmt.Fprintln(stderr, "verifier:", err)
		return 1
	}
}

type usageError struct{ error }

func proofCommand(flags *flag.FlagSet, args []string, stdout io.Writer) error {
	vkey := flags.String("vkey", "", "the ledger's verifier key; statements of succession may follow it")
	record := flags.String("record", "", "file with the record's stored bytes")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *vkey == "" || *record == "" {
		return usageError{fmt.Errorf("proof --vkey VKEY --record FILE PROOFFILE")}
	}
	leaf, err := os.ReadFile(*record)
	if err != nil {
		return err
	}
	file, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	proof, err := parseProof(string(file))
	if err != nil {
		return err
	}
	checkpoint, err := proof.verify(leaf, *vkey)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "record %d of %d in %s\n", proof.index, checkpoint.size, checkpoint.origin)
	return nil
}

func rootCommand(flags *flag.FlagSet, args []string, stdout io.Writer) error {
	path := flags.String("leaves", "", "file of leaves, each after its big-endian 32-bit length")
	if err := flags.Parse(args); err != nil || flags.NArg() != 0 || *path == "" {
		return usageError{fmt.Errorf("root --leaves FILE")}
	}
	leaves, err := readLeaves(*path)
	if err != nil {
		return err
	}
	root, err := rootOf(leaves)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d %s\n", len(leaves), base64.StdEncoding.EncodeToString(root))
	return nil
}

func consistencyCommand(flags *flag.FlagSet, args []string, stdout io.Writer) error {
	path := flags.String("leaves", "", "file of leaves, each after its big-endian 32-bit length")
	older := flags.Int("old", 0, "size of the older tree")
	newer := flags.Int("new", -1, "size of the newer tree; all leaves by default")
	if err := flags.Parse(args); err != nil || flags.NArg() != 0 || *path == "" {
		return usageError{fmt.Errorf("consistency --leaves FILE --old N [--new M]")}
	}
	leaves, err := readLeaves(*path)
	if err != nil {
		return err
	}
	if *newer < 0 {
		*newer = len(leaves)
	}
	if *older < 1 || *older > *newer || *newer > len(leaves) {
		return usageError{fmt.Errorf("1 <= old <= new <= %d leaves", len(leaves))}
	}
	proof, err := consistencyOf(leaves, *older, *newer)
	if err != nil {
		return err
	}
	for _, hash := range proof {
		fmt.Fprintln(stdout, base64.StdEncoding.EncodeToString(hash))
	}
	return nil
}

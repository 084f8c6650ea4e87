package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"filippo.io/torchwood"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/mod/sumdb/tlog"
)

// witnessedCommand checks a proof of an entry as whoever holds only a policy does: with filippo.io/torchwood, the log's
// signature, the cosignatures of a quorum, and the inclusion.
func witnessedCommand(flags *flag.FlagSet, args []string, stdout io.Writer) error {
	policyFile := flags.String("policy", "", "a c2sp.org/tlog-policy")
	entryFile := flags.String("entry", "", "file with the entry's bytes")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *policyFile == "" || *entryFile == "" {
		return usageError{fmt.Errorf("witnessed --policy FILE --entry FILE PROOFFILE")}
	}
	var files [3][]byte
	for number, path := range []string{*policyFile, *entryFile, flags.Arg(0)} {
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files[number] = file
	}
	policy, err := torchwood.ParsePolicy(files[0])
	if err != nil {
		return err
	}
	if err := torchwood.VerifyProof(policy, tlog.RecordHash(files[1]), files[2]); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "witnessed")
	return nil
}

// agentCommand is an ssh-agent with one new key, from which litewitness signs. It lives until its standard input ends.
func agentCommand(stdin io.Reader) func(*flag.FlagSet, []string, io.Writer) error {
	return func(flags *flag.FlagSet, args []string, stdout io.Writer) error {
		if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
			return usageError{fmt.Errorf("agent SOCKET")}
		}
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		signer, err := ssh.NewSignerFromKey(key)
		if err != nil {
			return err
		}
		keyring := agent.NewKeyring()
		if err := keyring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			return err
		}
		listener, err := net.Listen("unix", flags.Arg(0))
		if err != nil {
			return err
		}
		defer listener.Close()
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				go func() { _ = agent.ServeAgent(keyring, connection) }()
			}
		}()
		fmt.Fprintln(stdout, ssh.FingerprintSHA256(signer.PublicKey()))
		_, err = io.Copy(io.Discard, stdin)
		return err
	}
}

package main

import (
	"bufio"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// trees grows one tree, whose leaf n is the decimal text of n, with both libraries, and knows the root of each size.
type trees struct {
	stored storedHashes
	rng    *compact.Range
	roots  [][]byte
}

func newTrees() *trees {
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	return &trees{rng: factory.NewEmptyRange(0), roots: [][]byte{rfc6962.DefaultHasher.EmptyRoot()}}
}

// root is the root of a size, as compact.Range finds it.
func (t *trees) root(size int64) ([]byte, error) {
	for int64(len(t.roots)) <= size {
		leaf := []byte(strconv.Itoa(len(t.roots) - 1))
		hashes, err := tlog.StoredHashes(int64(len(t.roots)-1), leaf, t.stored)
		if err != nil {
			return nil, err
		}
		t.stored = append(t.stored, hashes...)
		if err := t.rng.Append(rfc6962.DefaultHasher.HashLeaf(leaf), nil); err != nil {
			return nil, err
		}
		root, err := t.rng.GetRootHash(nil)
		if err != nil {
			return nil, err
		}
		t.roots = append(t.roots, root)
	}
	return t.roots[size], nil
}

// checkLine checks one line of what `proofs` of the ledger's crate prints.
func (t *trees) checkLine(line string) error {
	fields := strings.Split(line, " ")
	numbers := map[string]int{"root": 1, "inclusion": 2, "consistency": 2}[fields[0]]
	if numbers == 0 || len(fields) < 1+numbers {
		return fmt.Errorf("no root and no proof")
	}
	var named []int64
	for _, text := range fields[1 : 1+numbers] {
		number, err := parseDecimal(text)
		if err != nil {
			return err
		}
		named = append(named, number)
	}
	var hashes [][]byte
	for _, text := range fields[1+numbers:] {
		hash, err := hex.DecodeString(text)
		if err != nil || len(hash) != tlog.HashSize {
			return fmt.Errorf("%q is no hash", text)
		}
		hashes = append(hashes, hash)
	}
	size := named[numbers-1]
	root, err := t.root(size)
	if err != nil {
		return err
	}
	switch fields[0] {
	case "root":
		if len(hashes) != 1 {
			return fmt.Errorf("%d roots", len(hashes))
		}
		if err := agree(hashes[0], root); err != nil {
			return err
		}
		other, err := tlog.TreeHash(size, t.stored)
		if err != nil {
			return err
		}
		return agree(other[:], root)
	case "inclusion":
		return checkInclusion(hashes, named[0], size, []byte(fields[1]), root)
	default:
		old, err := t.root(named[0])
		if err != nil {
			return err
		}
		return checkConsistency(hashes, named[0], old, size, root)
	}
}

// checkInclusion checks with both libraries that a record stands at an index of the tree of a size and a root.
func checkInclusion(path [][]byte, index, size int64, record, root []byte) error {
	if err := tlog.CheckRecord(tlogHashes(path), size, tlog.Hash(root), index, tlog.RecordHash(record)); err != nil {
		return fmt.Errorf("sumdb/tlog: %w", err)
	}
	err := proof.VerifyInclusion(
		rfc6962.DefaultHasher, uint64(index), uint64(size), rfc6962.DefaultHasher.HashLeaf(record), path, root)
	if err != nil {
		return fmt.Errorf("transparency-dev/merkle: %w", err)
	}
	return nil
}

// checkConsistency checks with both libraries that one tree is a prefix of another.
func checkConsistency(path [][]byte, older int64, oldRoot []byte, newer int64, newRoot []byte) error {
	if err := tlog.CheckTree(tlogHashes(path), newer, tlog.Hash(newRoot), older, tlog.Hash(oldRoot)); err != nil {
		return fmt.Errorf("sumdb/tlog: %w", err)
	}
	err := proof.VerifyConsistency(
		rfc6962.DefaultHasher, uint64(older), uint64(newer), path, oldRoot, newRoot)
	if err != nil {
		return fmt.Errorf("transparency-dev/merkle: %w", err)
	}
	return nil
}

func tlogHashes(path [][]byte) []tlog.Hash {
	var hashes []tlog.Hash
	for _, hash := range path {
		hashes = append(hashes, tlog.Hash(hash))
	}
	return hashes
}

func proofsCommand(in io.Reader) func(*flag.FlagSet, []string, io.Writer) error {
	return func(flags *flag.FlagSet, args []string, stdout io.Writer) error {
		if err := flags.Parse(args); err != nil || flags.NArg() != 0 {
			return usageError{fmt.Errorf("proofs < LINES")}
		}
		lines := bufio.NewScanner(in)
		known := newTrees()
		count := map[string]int{}
		for number := 1; lines.Scan(); number++ {
			if err := known.checkLine(lines.Text()); err != nil {
				return fmt.Errorf("line %d: %.60s: %w", number, lines.Text(), err)
			}
			kind, _, _ := strings.Cut(lines.Text(), " ")
			count[kind]++
		}
		if err := lines.Err(); err != nil {
			return err
		}
		if count["root"] == 0 {
			return fmt.Errorf("nothing was said")
		}
		fmt.Fprintf(stdout, "%d roots, %d inclusions and %d consistencies, of sizes up to %d\n",
			count["root"], count["inclusion"], count["consistency"], len(known.roots)-1)
		return nil
	}
}

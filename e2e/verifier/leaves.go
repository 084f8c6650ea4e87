package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// maxRecord is the largest record that Proofgate writes, in bytes.
const maxRecord = 65535

func readLeaves(path string) ([][]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := bufio.NewReader(file)
	var leaves [][]byte
	for {
		var length uint32
		err := binary.Read(reader, binary.BigEndian, &length)
		if errors.Is(err, io.EOF) {
			return leaves, nil
		}
		if err != nil {
			return nil, fmt.Errorf("leaf %d: %w", len(leaves), err)
		}
		if length > maxRecord {
			return nil, fmt.Errorf("leaf %d claims %d bytes", len(leaves), length)
		}
		leaf := make([]byte, length)
		if _, err := io.ReadFull(reader, leaf); err != nil {
			return nil, fmt.Errorf("leaf %d: %w", len(leaves), err)
		}
		leaves = append(leaves, leaf)
	}
}

// storedHashes is sumdb/tlog's flat tree.
type storedHashes []tlog.Hash

func (s storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, 0, len(indexes))
	for _, index := range indexes {
		if index < 0 || index >= int64(len(s)) {
			return nil, fmt.Errorf("node %d is not stored", index)
		}
		hashes = append(hashes, s[index])
	}
	return hashes, nil
}

func store(leaves [][]byte) (storedHashes, error) {
	var stored storedHashes
	for index, leaf := range leaves {
		hashes, err := tlog.StoredHashes(int64(index), leaf, stored)
		if err != nil {
			return nil, err
		}
		stored = append(stored, hashes...)
	}
	return stored, nil
}

// rootOf computes the RFC 6962 root with both libraries, which must agree.
func rootOf(leaves [][]byte) ([]byte, error) {
	stored, err := store(leaves)
	if err != nil {
		return nil, err
	}
	one, err := tlog.TreeHash(int64(len(leaves)), stored)
	if err != nil {
		return nil, err
	}
	if len(leaves) == 0 {
		// compact.Range has no root of an empty tree.
		other := rfc6962.DefaultHasher.EmptyRoot()
		return other, agree(one[:], other)
	}
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	rng := factory.NewEmptyRange(0)
	for _, leaf := range leaves {
		if err := rng.Append(rfc6962.DefaultHasher.HashLeaf(leaf), nil); err != nil {
			return nil, err
		}
	}
	other, err := rng.GetRootHash(nil)
	if err != nil {
		return nil, err
	}
	return other, agree(one[:], other)
}

func agree(one, other []byte) error {
	if !bytes.Equal(one, other) {
		return fmt.Errorf("sumdb/tlog finds the root %x, transparency-dev/merkle %x", one, other)
	}
	return nil
}

// consistencyOf proves that the tree of the first older leaves is a prefix of the tree of the first newer ones, with
// sumdb/tlog, and verifies the proof with both libraries.
func consistencyOf(leaves [][]byte, older, newer int) ([][]byte, error) {
	oldRoot, err := rootOf(leaves[:older])
	if err != nil {
		return nil, err
	}
	newRoot, err := rootOf(leaves[:newer])
	if err != nil {
		return nil, err
	}
	stored, err := store(leaves[:newer])
	if err != nil {
		return nil, err
	}
	path, err := tlog.ProveTree(int64(newer), int64(older), stored)
	if err != nil {
		return nil, err
	}
	hashes := make([][]byte, 0, len(path))
	for _, hash := range path {
		hashes = append(hashes, bytes.Clone(hash[:]))
	}
	return hashes, checkConsistency(hashes, int64(older), oldRoot, int64(newer), newRoot)
}

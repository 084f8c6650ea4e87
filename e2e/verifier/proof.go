package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// tlogProof is a c2sp.org/tlog-proof@v1 file.
type tlogProof struct {
	index      int64
	hashes     [][]byte
	checkpoint string
}

// checkpoint is what a verified c2sp.org/tlog-checkpoint says.
type checkpoint struct {
	origin string
	size   int64
	root   []byte
}

func parseProof(text string) (*tlogProof, error) {
	head, note, found := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	if !found || lines[0] != "c2sp.org/tlog-proof@v1" {
		return nil, fmt.Errorf("not a tlog-proof")
	}
	lines = lines[1:]
	if len(lines) > 0 && strings.HasPrefix(lines[0], "extra ") {
		lines = lines[1:]
	}
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "index ") {
		return nil, fmt.Errorf("no index line")
	}
	index, err := parseDecimal(strings.TrimPrefix(lines[0], "index "))
	if err != nil {
		return nil, err
	}
	parsed := &tlogProof{index: index, checkpoint: note}
	for _, line := range lines[1:] {
		hash, err := parseHash(line)
		if err != nil {
			return nil, err
		}
		parsed.hashes = append(parsed.hashes, hash)
	}
	return parsed, nil
}

// verify checks the checkpoint's signature by the ledger key under the name of the origin, and the record's inclusion
// with both libraries.
func (p *tlogProof) verify(record []byte, ledgerKey string) (*checkpoint, error) {
	signed, err := openCheckpoint(p.checkpoint, ledgerKey)
	if err != nil {
		return nil, err
	}
	if p.index >= signed.size {
		return nil, fmt.Errorf("record %d is outside a log of %d", p.index, signed.size)
	}
	if err := checkInclusion(p.hashes, p.index, signed.size, record, signed.root); err != nil {
		return nil, err
	}
	return signed, nil
}

func openCheckpoint(text, ledgerKey string) (*checkpoint, error) {
	origin, _, _ := strings.Cut(text, "\n")
	line, err := keyLine(ledgerKey)
	if err != nil {
		return nil, err
	}
	var verifiers []note.Verifier
	until := map[uint32]int64{}
	for _, of := range line {
		key, err := originKey(of.vkey, origin)
		if err != nil {
			return nil, err
		}
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return nil, err
		}
		verifiers = append(verifiers, verifier)
		until[verifier.KeyHash()] = of.until
	}
	opened, err := note.Open([]byte(text), note.VerifierList(verifiers...))
	if err != nil {
		return nil, err
	}
	ended := true
	for _, signature := range opened.Sigs {
		end := until[signature.Hash]
		ended = ended && end >= 0 && begun(origin) > end
	}
	if ended {
		return nil, fmt.Errorf("the key had ended when the log began")
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return nil, fmt.Errorf("the checkpoint has not three lines")
	}
	size, err := parseDecimal(lines[1])
	if err != nil {
		return nil, err
	}
	root, err := parseHash(lines[2])
	if err != nil {
		return nil, err
	}
	return &checkpoint{origin: lines[0], size: size, root: root}, nil
}

// originKey gives the ledger's public key the name of one log's origin, which must be the ledger's name or below it.
func originKey(ledgerKey, origin string) (string, error) {
	parts := strings.SplitN(ledgerKey, "+", 3)
	if len(parts) != 3 {
		return "", fmt.Errorf("the vkey is not name+hash+key")
	}
	if _, err := note.NewVerifier(ledgerKey); err != nil {
		return "", err
	}
	if origin != parts[0] && !strings.HasPrefix(origin, parts[0]+"/") {
		return "", fmt.Errorf("origin %q is not below %q", origin, parts[0])
	}
	key, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(bytes.Join([][]byte{[]byte(origin), key}, []byte("\n")))
	return fmt.Sprintf("%s+%08x+%s", origin, binary.BigEndian.Uint32(digest[:4]), parts[2]), nil
}

func parseDecimal(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(number, 10) != text || number < 0 {
		return 0, fmt.Errorf("%q is not a decimal number", text)
	}
	return number, nil
}

func parseHash(text string) ([]byte, error) {
	hash, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(hash) != sha256.Size || len(text) != 44 {
		return nil, fmt.Errorf("%q is not a hash", text)
	}
	return hash, nil
}

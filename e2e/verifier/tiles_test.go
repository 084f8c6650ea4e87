package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// signer makes a key pair and signs checkpoints with it under its own name.
func signer(t *testing.T, name string) (string, func(size int64, root tlog.Hash) string) {
	t.Helper()
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	key, err := note.NewSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	return public, func(size int64, root tlog.Hash) string {
		text := fmt.Sprintf("%s\n%d\n%s\n", name, size, base64.StdEncoding.EncodeToString(root[:]))
		signed, err := note.Sign(&note.Note{Text: text}, key)
		if err != nil {
			t.Fatal(err)
		}
		return string(signed)
	}
}

// writeTiles writes a log of heads in tiles, with sumdb/tlog alone; it returns its directory and both keys.
func writeTiles(t *testing.T, size int64) (string, string, string) {
	t.Helper()
	auditor, sign := signer(t, "ledger.example/audit")
	ledger, signHead := signer(t, "ledger.example/demo")
	dir := t.TempDir()
	write := func(path string, data []byte) {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var leaves [][]byte
	for number := range size {
		entry, err := json.Marshal(head{
			V: 1, Kind: "head", Origin: "ledger.example/demo", Size: number, Checkpoint: signHead(number, tlog.Hash{})})
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, entry)
	}
	stored, err := store(leaves)
	if err != nil {
		t.Fatal(err)
	}
	for _, tile := range tlog.NewTiles(tileHeight, 0, size) {
		data, err := tlog.ReadTileData(tile, stored)
		if err != nil {
			t.Fatal(err)
		}
		write(tilePath(tile), data)
		if tile.L == 0 {
			var bundle []byte
			for _, leaf := range leaves[tile.N<<tileHeight:][:tile.W] {
				bundle = append(binary.BigEndian.AppendUint16(bundle, uint16(len(leaf))), leaf...)
			}
			tile.L = -1
			write(tilePath(tile), bundle)
		}
	}
	root, err := tlog.TreeHash(size, stored)
	if err != nil {
		t.Fatal(err)
	}
	write("checkpoint", []byte(sign(size, root)))
	return dir, auditor, ledger
}

func TestALogInTilesIsCheckedFromItsCheckpointToItsEntries(t *testing.T) {
	for _, size := range []int64{1, 255, 256, 257, 600} {
		dir, auditor, ledger := writeTiles(t, size)
		signed, err := checkTiles(source(dir), auditor, ledger)
		if err != nil || signed.size != size {
			t.Errorf("%d entries: %v, %v", size, signed, err)
		}
		if _, err := checkTiles(source(dir), ledger, ledger); err == nil {
			t.Errorf("%d entries verify with another key", size)
		}
		if _, err := checkTiles(source(dir), auditor, auditor); err == nil {
			t.Errorf("%d heads verify with another key", size)
		}
	}
}

func TestAChangedByteInAnyFileOfALogInTilesIsFound(t *testing.T) {
	dir, auditor, ledger := writeTiles(t, 300)
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, at := range []int{0, len(data) / 2, len(data) - 8} {
			changed := append([]byte(nil), data...)
			changed[at] ^= 1
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				return err
			}
			if _, err := checkTiles(source(dir), auditor, ledger); err == nil {
				t.Errorf("byte %d of %s", at, strings.TrimPrefix(path, dir))
			}
		}
		return os.WriteFile(path, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnEntryThatTellsAStatementHasADigestAndNoCheckpoint(t *testing.T) {
	const ledger = "ledger.example/demo+00000000+AA=="
	entry := func(origin, statement string) string {
		return fmt.Sprintf(`{"v":1,"kind":"statement","origin":%q,"size":0,%s}`, origin, statement)
	}
	digest := strings.Repeat("0a", 32)
	told := fmt.Sprintf(`"statement":{"kind":"erasure","sha256":%q,"signed":1}`, digest)
	for name, one := range map[string]struct {
		entry string
		holds bool
	}{
		"about the ledger":     {entry("ledger.example/demo", told), true},
		"about a log of it":    {entry("ledger.example/demo/0/01M89PCZT1JE2K4A4FYY15YK69", told), true},
		"about another ledger": {entry("ledger.example/demon", told), false},
		"without a statement":  {entry("ledger.example/demo", `"predecessor":null`), false},
		"with a checkpoint":    {entry("ledger.example/demo", told+`,"checkpoint":"any"`), false},
		"with a short digest":  {entry("ledger.example/demo", strings.Replace(told, "0a0a", "0a", 1)), false},
	} {
		if err := checkHead([]byte(one.entry), "", ledger); (err == nil) != one.holds {
			t.Errorf("%s: %v", name, err)
		}
	}
}

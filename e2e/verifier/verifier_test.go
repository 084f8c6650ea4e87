package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// The inputs and roots of the Certificate Transparency reference tests.
var (
	referenceLeaves = []string{
		"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	referenceRoots = []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
)

func leaves(t *testing.T) [][]byte {
	t.Helper()
	var all [][]byte
	for _, text := range referenceLeaves {
		leaf, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, leaf)
	}
	return all
}

func writeLeaves(t *testing.T, all [][]byte) string {
	t.Helper()
	var file bytes.Buffer
	for _, leaf := range all {
		file.Write(binary.BigEndian.AppendUint32(nil, uint32(len(leaf))))
		file.Write(leaf)
	}
	return writeFile(t, "leaves", file.Bytes())
}

func writeFile(t *testing.T, name string, contents []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func call(args ...string) (int, string) {
	return callWith("", args...)
}

func callWith(stdin string, args ...string) (int, string) {
	var stdout, stderr bytes.Buffer
	status := run(args, strings.NewReader(stdin), &stdout, &stderr)
	return status, stdout.String() + stderr.String()
}

func TestReferenceRoots(t *testing.T) {
	all := leaves(t)
	for size, want := range referenceRoots {
		root, err := rootOf(all[:size])
		if err != nil || hex.EncodeToString(root) != want {
			t.Errorf("size %d: %x, %v, want %s", size, root, err, want)
		}
	}
}

func TestRootCommand(t *testing.T) {
	status, output := call("root", "--leaves", writeLeaves(t, leaves(t)))
	if status != 0 || output != "8 XcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n" {
		t.Errorf("%d %q", status, output)
	}
	status, _ = call("root", "--leaves", writeFile(t, "leaves", []byte{0, 0, 0, 9, 1}))
	if status != 1 {
		t.Errorf("a truncated leaf: exit %d", status)
	}
}

func TestConsistencyCommand(t *testing.T) {
	path := writeLeaves(t, leaves(t))
	if status, output := call("consistency", "--leaves", path, "--old", "3", "--new", "7"); status != 0 ||
		strings.Count(output, "\n") != 4 {
		t.Errorf("%d %q", status, output)
	}
	for _, old := range []string{"0", "9"} {
		if status, _ := call("consistency", "--leaves", path, "--old", old); status != 2 {
			t.Errorf("old size %s: exit %d", old, status)
		}
	}
}

func TestProofsCommand(t *testing.T) {
	hash := func(data tlog.Hash) string { return hex.EncodeToString(data[:]) }
	zero, one := tlog.RecordHash([]byte("0")), tlog.RecordHash([]byte("1"))
	root := hash(tlog.NodeHash(zero, one))
	good := "root 2 " + root + "\ninclusion 0 2 " + hash(one) + "\ninclusion 1 2 " + hash(zero) +
		"\nconsistency 1 2 " + hash(one) + "\nconsistency 2 2\n"
	status, output := callWith(good, "proofs")
	if status != 0 || output != "1 roots, 2 inclusions and 2 consistencies, of sizes up to 2\n" {
		t.Errorf("%d %q", status, output)
	}
	for _, bad := range []string{
		"", "root 2 " + hash(zero), "root 2", "inclusion 0 2 " + hash(zero), "inclusion 0 2", "inclusion 2 2 " + hash(one),
		"inclusion 0 2 " + hash(one) + " " + hash(one), "consistency 1 2 " + hash(zero), "consistency 1 2",
		"inclusion 00 2 " + hash(one), "inclusion 0 2 00", "other 0 2 " + hash(one),
	} {
		if status, output := callWith(bad+"\n", "proofs"); status != 1 {
			t.Errorf("%q: exit %d, %s", bad, status, output)
		}
	}
}

// golden is where Proofgate's own tests keep a proof file, its record and the ledger's key.
const golden = "../../rust-core/crates/ledger/tests/vectors/"

func TestGoldenProof(t *testing.T) {
	vkey, err := os.ReadFile(golden + "vkey")
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(vkey))
	status, output := call("proof", "--vkey", key, "--record", golden+"record", golden+"record.tlog-proof")
	if status != 0 || !strings.HasPrefix(output, "record 4 of 11 in ledger.example/demo/3/") {
		t.Fatalf("%d %q", status, output)
	}

	proof, err := os.ReadFile(golden + "record.tlog-proof")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(string) string{
		"another index":  func(text string) string { return strings.Replace(text, "index 4", "index 5", 1) },
		"a leading zero": func(text string) string { return strings.Replace(text, "index 4", "index 04", 1) },
		"another size":   func(text string) string { return strings.Replace(text, "\n11\n", "\n12\n", 1) },
		"a missing hash": func(text string) string {
			lines := strings.SplitAfterN(text, "\n", 4)
			return lines[0] + lines[1] + lines[3]
		},
		"another format": func(text string) string { return strings.Replace(text, "@v1", "@v2", 1) },
		"no signature":   func(text string) string { return text[:strings.LastIndex(text, "\u2014")] },
		"another shard":  func(text string) string { return strings.ReplaceAll(text, "demo/3/", "demo/4/") },
		"an unrelated origin": func(text string) string {
			return strings.ReplaceAll(text, "ledger.example/demo/3/", "ledger.example/demo3/")
		},
	} {
		path := writeFile(t, "changed", []byte(change(string(proof))))
		if status, _ := call("proof", "--vkey", key, "--record", golden+"record", path); status != 1 {
			t.Errorf("%s: exit %d", name, status)
		}
	}
	other := writeFile(t, "other", []byte("another record"))
	if status, _ := call("proof", "--vkey", key, "--record", other, golden+"record.tlog-proof"); status != 1 {
		t.Errorf("another record: exit %d", status)
	}
}

func TestExtraIsIgnored(t *testing.T) {
	proof, err := parseProof("c2sp.org/tlog-proof@v1\nextra eA==\nindex 0\n\nnote\n")
	if err != nil || proof.index != 0 || len(proof.hashes) != 0 || proof.checkpoint != "note\n" {
		t.Errorf("%+v, %v", proof, err)
	}
}

func TestOriginKeyHasTheIdOfItsName(t *testing.T) {
	_, vkey, err := note.GenerateKey(rand.Reader, "ledger.example/demo")
	if err != nil {
		t.Fatal(err)
	}
	same, err := originKey(vkey, "ledger.example/demo")
	if err != nil || same != vkey {
		t.Errorf("%s, %v", same, err)
	}
	derived, err := originKey(vkey, "ledger.example/demo/0/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.NewVerifier(derived); err != nil {
		t.Error(err)
	}
}

func TestBothLibrariesStoreTheSameNodes(t *testing.T) {
	stored, err := store(leaves(t))
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(stored)) != tlog.StoredHashIndex(0, 8) {
		t.Errorf("%d nodes", len(stored))
	}
}

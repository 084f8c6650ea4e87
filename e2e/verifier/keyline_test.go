package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

type pair struct {
	signer note.Signer
	vkey   string
}

func newPair(t *testing.T, name string) pair {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	return pair{signer, vkey}
}

func succession(t *testing.T, old, follower pair, until int64, by ...note.Signer) string {
	t.Helper()
	text := fmt.Sprintf("%s\nold %s\nnew %s\nmade 1\nuntil %d\n", successionFormat, old.vkey, follower.vkey, until)
	signed, err := note.Sign(&note.Note{Text: text}, by...)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

func TestWhoeverKnowsOneKeyOpensWhatTheOthersSigned(t *testing.T) {
	old, young := newPair(t, "a/b"), newPair(t, "a/b")
	statement := succession(t, old, young, 1_500_000, old.signer, young.signer)
	for _, known := range []pair{old, young} {
		line, err := keyLine(known.vkey + "\n\n" + statement)
		if err != nil || len(line) != 2 || line[0] != (member{old.vkey, 1_500_000}) || line[1] != (member{young.vkey, -1}) {
			t.Fatalf("%v, %v", line, err)
		}
	}
}

func TestOneSignatureAForkAndALoopAreRefused(t *testing.T) {
	old, young, other := newPair(t, "a/b"), newPair(t, "a/b"), newPair(t, "a/b")
	there := succession(t, old, young, 9, old.signer, young.signer)
	for what, statements := range map[string]string{
		"the new key alone": succession(t, old, young, 9, young.signer),
		"the old key alone": succession(t, old, young, 9, old.signer),
		"a fork":            there + succession(t, old, other, 9, old.signer, other.signer),
		"a join":            there + succession(t, other, young, 9, other.signer, young.signer),
		"a loop":            there + succession(t, young, old, 9, young.signer, old.signer),
	} {
		for _, known := range []pair{old, young, other} {
			if line, err := keyLine(known.vkey + "\n" + statements); err == nil && len(line) > 1 {
				t.Errorf("%s: %v", what, line)
			}
			if _, err := keyLine(known.vkey + "\n" + statements); err == nil && known != other {
				t.Errorf("%s is not refused", what)
			}
		}
	}
}

func TestAKeyThatHasEndedOpensNoLogThatBeganLater(t *testing.T) {
	old, young := newPair(t, "a/b"), newPair(t, "a/b")
	known := young.vkey + "\n" + succession(t, old, young, 1_500_000, old.signer, young.signer)
	for ulid, opens := range map[string]bool{"00000000000000000000000000": true, "00000002XR0000000000000000": false} {
		text := fmt.Sprintf("a/b/0/%s\n1\n%s=\n", ulid, strings.Repeat("A", 43))
		skey := origin(t, old, "a/b/0/"+ulid)
		signed, err := note.Sign(&note.Note{Text: text}, skey)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openCheckpoint(string(signed), known); (err == nil) != opens {
			t.Errorf("%s: %v", ulid, err)
		}
	}
}

// named signs as a key does under the name of an origin.
type named struct {
	note.Signer
	name string
	hash uint32
}

func (n named) Name() string    { return n.name }
func (n named) KeyHash() uint32 { return n.hash }

func origin(t *testing.T, key pair, name string) note.Signer {
	t.Helper()
	vkey, err := originKey(key.vkey, name)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	return named{key.signer, name, verifier.KeyHash()}
}

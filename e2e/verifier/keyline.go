package main

import (
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

const successionFormat = "proofgate.dev/key-succession@v1"

// A member of a line of keys: until is the last moment at which it may begin a log, in unix microseconds; -1 of the newest.
type member struct {
	vkey  string
	until int64
}

// keyLine reads a vkey and the statements of succession behind it, and follows these (docs/reference/ledger-format.md, section 10). The
// members come oldest first.
func keyLine(text string) ([]member, error) {
	known, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	known = strings.TrimSpace(known)
	if _, err := note.NewVerifier(known); err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(known, "+")
	next, before, until := map[string]string{}, map[string]string{}, map[string]int64{}
	for _, statement := range splitStatements(rest) {
		old, follower, end, err := openSuccession(statement)
		if err != nil {
			return nil, err
		}
		if of, _, _ := strings.Cut(old, "+"); of != name {
			continue
		}
		if earlier, is := until[old]; !is || end < earlier {
			until[old] = end
		}
		next[old], before[follower] = only(next, old, follower), only(before, follower, old)
	}
	line := []string{known}
	for step, is := next[known]; is; step, is = next[step] {
		line = append(line, step)
		if len(line) > 64 {
			return nil, fmt.Errorf("the line of keys has no end")
		}
	}
	for step, is := before[known]; is; step, is = before[step] {
		line = append([]string{step}, line...)
		if len(line) > 128 {
			return nil, fmt.Errorf("the line of keys has no beginning")
		}
	}
	var members []member
	seen := map[string]bool{}
	for _, vkey := range line {
		follower, ends := next[vkey]
		former, begins := before[vkey]
		if vkey == "" || seen[vkey] || ends && follower == "" || begins && former == "" {
			return nil, fmt.Errorf("the line of keys forks, or follows itself")
		}
		seen[vkey] = true
		end := int64(-1)
		if ends {
			end = until[vkey]
		}
		members = append(members, member{vkey, end})
	}
	return members, nil
}

// only gives what a map holds for a key from now on: nothing valid where it held something else.
func only(known map[string]string, key, value string) string {
	if other, is := known[key]; is && other != value {
		return ""
	}
	return value
}

func splitStatements(text string) []string {
	var statements []string
	for _, part := range strings.Split("\n"+text, "\n"+successionFormat+"\n")[1:] {
		statements = append(statements, successionFormat+"\n"+strings.TrimRight(part, "\n")+"\n")
	}
	return statements
}

// openSuccession checks that both keys that a statement names have signed it.
func openSuccession(text string) (old, follower string, until int64, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 6 || lines[0] != successionFormat || lines[5] != "" {
		return "", "", 0, fmt.Errorf("no statement of key succession")
	}
	fields := make([]string, 4)
	for at, word := range []string{"old ", "new ", "made ", "until "} {
		value, is := strings.CutPrefix(lines[at+1], word)
		if !is {
			return "", "", 0, fmt.Errorf("a statement's line begins with another word")
		}
		fields[at] = value
	}
	made, err := parseDecimal(fields[2])
	if err != nil {
		return "", "", 0, err
	}
	if until, err = parseDecimal(fields[3]); err != nil || until < made {
		return "", "", 0, fmt.Errorf("a statement's times are none")
	}
	var signers []note.Verifier
	for _, vkey := range fields[:2] {
		signer, err := note.NewVerifier(vkey)
		if err != nil {
			return "", "", 0, err
		}
		signers = append(signers, signer)
	}
	if signers[0].Name() != signers[1].Name() || fields[0] == fields[1] {
		return "", "", 0, fmt.Errorf("a statement is about keys of two names, or about one")
	}
	opened, err := note.Open([]byte(text), note.VerifierList(signers...))
	if err != nil {
		return "", "", 0, err
	}
	if len(opened.Sigs) != 2 {
		return "", "", 0, fmt.Errorf("a statement is not signed by both keys")
	}
	return fields[0], fields[1], until, nil
}

// begun tells when the log of an origin began, in unix microseconds; -1 where its last part is no ULID.
func begun(origin string) int64 {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	ulid := origin[strings.LastIndex(origin, "/")+1:]
	if len(ulid) != 26 || ulid[0] > '7' {
		return -1
	}
	var milliseconds int64
	for at, digit := range ulid {
		value := strings.IndexRune(digits, digit)
		if value < 0 {
			return -1
		}
		if at < 10 {
			milliseconds = milliseconds<<5 | int64(value)
		}
	}
	return milliseconds * 1000
}

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// tileHeight is the height of tiles in c2sp.org/tlog-tiles.
const tileHeight = 8

// maxTile bounds what is read of one tile or bundle: 256 entries of 65,535 bytes and their lengths.
const maxTile = 256 * (maxRecord + 2)

// source reads what stands at a path of a log: below a URL, or in a directory.
type source string

func (s source) read(path string) ([]byte, error) {
	if !strings.HasPrefix(string(s), "http://") && !strings.HasPrefix(string(s), "https://") {
		return os.ReadFile(filepath.Join(string(s), filepath.FromSlash(path)))
	}
	client := http.Client{Timeout: 30 * time.Second}
	response, err := client.Get(strings.TrimSuffix(string(s), "/") + "/" + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxTile+1))
}

// tilePath is the path of a tile in c2sp.org/tlog-tiles, which names neither its height nor its data like sumdb/tlog.
func tilePath(tile tlog.Tile) string {
	path := strings.TrimPrefix(tile.Path(), fmt.Sprintf("tile/%d/", tile.H))
	if rest, found := strings.CutPrefix(path, "data/"); found {
		path = "entries/" + rest
	}
	return "tile/" + path
}

// Height, ReadTiles and SaveTiles make a source a tlog.TileReader.
func (s source) Height() int { return tileHeight }

func (s source) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var read [][]byte
	for _, tile := range tiles {
		data, err := s.read(tilePath(tile))
		if err != nil {
			return nil, err
		}
		read = append(read, data)
	}
	return read, nil
}

func (s source) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadCheckpoint, ReadTile and ReadEntryBundle make it a fsck.Fetcher.
func (s source) ReadCheckpoint(context.Context) ([]byte, error) { return s.read(layout.CheckpointPath) }

func (s source) ReadTile(_ context.Context, level, index uint64, width uint8) ([]byte, error) {
	return s.read(layout.TilePath(level, index, width))
}

func (s source) ReadEntryBundle(_ context.Context, index uint64, width uint8) ([]byte, error) {
	return s.read(layout.EntriesPath(index, width))
}

// head is an entry of an auditor's aggregate log.
type head struct {
	V          int    `json:"v"`
	Kind       string `json:"kind"`
	Origin     string `json:"origin"`
	Size       int64  `json:"size"`
	Checkpoint string `json:"checkpoint"`
	// Statement is what the retention job signed, by its digest.
	Statement *struct {
		SHA256 string `json:"sha256"`
	} `json:"statement"`
}

// checkTiles checks a log in tiles from its checkpoint to its last entry, and that every entry carries a head which the
// ledger's key signed or, of the auditor's own log of who read what, the auditor's; or tells the retention job's
// statement. It returns the checkpoint.
func checkTiles(from source, auditorKey, ledgerKey string) (*checkpoint, error) {
	text, err := from.read("checkpoint")
	if err != nil {
		return nil, err
	}
	signed, err := openCheckpoint(string(text), auditorKey)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if name, _, _ := strings.Cut(auditorKey, "+"); signed.origin != name {
		return nil, fmt.Errorf("the checkpoint is of %q, not of %q", signed.origin, name)
	}
	tree := tlog.Tree{N: signed.size, Hash: tlog.Hash(signed.root)}
	// It believes no tile that does not lead to the root.
	hashes := tlog.TileHashReader(tree, from)
	var leaves [][]byte
	for first := int64(0); first < signed.size; first += 1 << tileHeight {
		width := min(signed.size-first, 1<<tileHeight)
		bundle := tlog.Tile{H: tileHeight, L: -1, N: first >> tileHeight, W: int(width)}
		data, err := from.read(tilePath(bundle))
		if err != nil {
			return nil, err
		}
		entries, err := splitBundle(data)
		if err != nil || int64(len(entries)) != width {
			return nil, fmt.Errorf("%s holds %d entries, not %d: %w", tilePath(bundle), len(entries), width, err)
		}
		leaves = append(leaves, entries...)
	}
	indexes := make([]int64, len(leaves))
	for number := range leaves {
		indexes[number] = tlog.StoredHashIndex(0, int64(number))
	}
	stored, err := hashes.ReadHashes(indexes)
	if err != nil {
		return nil, err
	}
	for number, leaf := range leaves {
		if stored[number] != tlog.RecordHash(leaf) {
			return nil, fmt.Errorf("entry %d is not the one that the tiles commit to", number)
		}
		if err := checkHead(leaf, auditorKey, ledgerKey); err != nil {
			return nil, fmt.Errorf("entry %d: %w", number, err)
		}
	}
	root, err := rootOf(leaves)
	if err != nil {
		return nil, err
	}
	if err := agree(signed.root, root); err != nil {
		return nil, err
	}
	return signed, checkWithTessera(from, auditorKey, signed.origin)
}

// checkWithTessera lets transparency-dev/tessera read the whole log: it makes every tile anew from the bundles.
func checkWithTessera(from source, auditorKey, origin string) error {
	verifier, err := note.NewVerifier(auditorKey)
	if err != nil {
		return err
	}
	hashes := func(bundle []byte) ([][]byte, error) {
		entries, err := splitBundle(bundle)
		for number, entry := range entries {
			entries[number] = rfc6962.DefaultHasher.HashLeaf(entry)
		}
		return entries, err
	}
	if err := fsck.New(origin, verifier, from, hashes, fsck.Opts{N: 2}).Check(context.Background()); err != nil {
		return fmt.Errorf("tessera: %w", err)
	}
	return nil
}

func checkHead(leaf []byte, auditorKey, ledgerKey string) error {
	var told head
	if err := json.Unmarshal(leaf, &told); err != nil {
		return err
	}
	if told.V != 1 {
		return fmt.Errorf("version %d", told.V)
	}
	if told.Kind == "statement" {
		return checkStatement(told, ledgerKey)
	}
	key := ledgerKey
	if told.Kind == "access" {
		key = auditorKey
	}
	signed, err := openCheckpoint(told.Checkpoint, key)
	if err != nil {
		return err
	}
	if signed.origin != told.Origin || signed.size != told.Size {
		return fmt.Errorf("it tells %d records of %s, and its checkpoint %d of %s",
			told.Size, told.Origin, signed.size, signed.origin)
	}
	return nil
}

// statementDigest is how an entry names the statement that it tells.
var statementDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checkStatement checks an entry that tells what the retention job signed about the ledger or a log of it. It carries
// no checkpoint, and nothing of the statement but its digest.
func checkStatement(told head, ledgerKey string) error {
	ledger, _, _ := strings.Cut(ledgerKey, "+")
	if told.Origin != ledger && !strings.HasPrefix(told.Origin, ledger+"/") {
		return fmt.Errorf("it tells a statement about %q", told.Origin)
	}
	if told.Statement == nil || told.Checkpoint != "" || !statementDigest.MatchString(told.Statement.SHA256) {
		return errors.New("it is not of the form that statements have")
	}
	return nil
}

func splitBundle(data []byte) ([][]byte, error) {
	reader := bytes.NewReader(data)
	var entries [][]byte
	for {
		var length uint16
		err := binary.Read(reader, binary.BigEndian, &length)
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return entries, err
		}
		entry := make([]byte, length)
		if _, err := io.ReadFull(reader, entry); err != nil {
			return entries, fmt.Errorf("an entry is cut off: %w", err)
		}
		entries = append(entries, entry)
	}
}

func tilesCommand(flags *flag.FlagSet, args []string, stdout io.Writer) error {
	auditorKey := flags.String("vkey", "", "the auditor's verifier key")
	ledgerKey := flags.String("ledger-vkey", "", "the ledger's verifier key")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *auditorKey == "" || *ledgerKey == "" {
		return usageError{fmt.Errorf("tiles --vkey VKEY --ledger-vkey VKEY URL|DIRECTORY")}
	}
	signed, err := checkTiles(source(flags.Arg(0)), *auditorKey, *ledgerKey)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d heads in %s\n", signed.size, signed.origin)
	return nil
}

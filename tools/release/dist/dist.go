// Package dist puts a release together, signs it, and verifies one.
//
// A release is a folder of files. SHA256SUMS names all of them with their hashes, and SHA256SUMS.minisig signs it: who
// trusts the key and checks both trusts every file. provenance.json says what they were made of.
package dist

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// Names of the files that are about the others.
const (
	sums       = "SHA256SUMS"
	signature  = sums + ".minisig"
	provenance = "provenance.json"
)

// A Release are files by name.
type Release map[string][]byte

// Write writes the files into a folder that it makes anew, with their sums, and signs these.
func (r Release) Write(folder, version string, key minisign.PrivateKey) error {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	list := r.sums()
	all := maps.Clone(r)
	all[sums] = list
	// minisign signs this since 2015: the hash of the file. Comments name the release and no time, so that a release
	// that is made again is the same.
	reader := minisign.NewReader(bytes.NewReader(list))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return err
	}
	all[signature] = reader.SignWithComments(key, "loadline "+version, "signature of loadline "+version)
	for name, content := range all {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sums returns the hashes of the files as sha256sum prints them.
func (r Release) sums() []byte {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&out, "%s  %s\n", hash(r[name]), name)
	}
	return out.Bytes()
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read reads a release and returns an error unless the key has signed it and each of its files is what was signed, with
// no file more and none less.
func Read(folder string, key minisign.PublicKey) (Release, error) {
	list, err := os.ReadFile(filepath.Join(folder, sums))
	if err != nil {
		return nil, err
	}
	signed, err := os.ReadFile(filepath.Join(folder, signature))
	if err != nil {
		return nil, err
	}
	reader := minisign.NewReader(bytes.NewReader(list))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return nil, err
	}
	if !reader.Verify(key, signed) {
		return nil, fmt.Errorf("%s is not signed by key %X", sums, key.ID())
	}
	want := map[string]string{}
	for scanner := bufio.NewScanner(bytes.NewReader(list)); scanner.Scan(); {
		sum, name, ok := strings.Cut(scanner.Text(), "  ")
		if !ok || filepath.Base(name) != name || want[name] != "" {
			return nil, fmt.Errorf("%s: %q is no line of it", sums, scanner.Text())
		}
		want[name] = sum
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	r := Release{}
	for _, e := range entries {
		if e.Name() == sums || e.Name() == signature {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		if hash(content) != want[e.Name()] {
			return nil, fmt.Errorf("%s is not the file that was signed", e.Name())
		}
		r[e.Name()] = content
		delete(want, e.Name())
	}
	if len(want) > 0 {
		return nil, fmt.Errorf("missing: %s", strings.Join(slices.Sorted(maps.Keys(want)), ", "))
	}
	return r, nil
}

// Package image makes OCI images of programs without a container daemon: the program, the shared libraries that it
// needs, and nothing else. Equal files give equal bytes: names are sorted, times are one time, nobody owns anything.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A File is a regular file of an image, or a link.
type File struct {
	Content    []byte
	Executable bool
	// Link is the path that a symbolic link leads to; empty: it is none.
	Link string
}

// A Tree holds files by absolute path. Their folders come by themselves; root owns all, everybody may read all, and
// nobody needs to write.
type Tree map[string]File

// tar returns the tree as an archive, with folders before what they hold.
func (t Tree) tar(when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	seen := map[string]bool{"/": true}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
			return nil, fmt.Errorf("%q is not the clean absolute path of a file", name)
		}
		if err := writeFolders(w, path.Dir(name), seen, when); err != nil {
			return nil, err
		}
		file := t[name]
		mode := int64(0o644)
		if file.Executable {
			mode = 0o755
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Mode: mode,
			Size: int64(len(file.Content)), ModTime: when, Format: tar.FormatPAX}
		if file.Link != "" {
			header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, file.Link, 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(file.Content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func writeFolders(w *tar.Writer, folder string, seen map[string]bool, when time.Time) error {
	if seen[folder] {
		return nil
	}
	seen[folder] = true
	if err := writeFolders(w, path.Dir(folder), seen, when); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(folder, "/") + "/", Mode: 0o755,
		ModTime: when, Format: tar.FormatPAX})
}

// Archive returns the tree as a compressed archive.
func (t Tree) Archive(when time.Time) ([]byte, error) {
	content, err := t.tar(when)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// layer returns the tree as a layer of an image.
func (t Tree) layer(when time.Time) (v1.Layer, error) {
	content, err := t.tar(when)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressedCaching)
}

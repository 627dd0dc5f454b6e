package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Write writes the index as an OCI layout into a folder, which it makes anew, under the name by which clusters pull it.
func Write(folder, reference, version string, index v1.ImageIndex) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": version,
		"io.containerd.image.name":          reference, // by which containerd and Docker name what they import
	}))
}

// Read returns the index that Write wrote.
func Read(folder string) (v1.ImageIndex, error) {
	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s names %d images, want 1", folder, len(manifest.Manifests))
	}
	return outer.ImageIndex(manifest.Manifests[0].Digest)
}

// Archive writes a layout as one file, an OCI archive, which `podman load`, `ctr image import` and `skopeo` read.
func Archive(folder, file string, when time.Time) (err error) {
	tree := Tree{}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		tree["/"+filepath.ToSlash(name)] = File{Content: content}
		return err
	})
	if err != nil {
		return err
	}
	if len(tree) == 0 {
		return errors.New(folder + " has no files")
	}
	content, err := tree.tar(when)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// Unpack writes the files of an archive, or of an image's layers put together, into a folder. Ours hold files, folders
// and links to absolute paths within; other links and devices are refused. Links are made last: nothing is written
// through them.
func Unpack(content io.Reader, folder string) error {
	archive := tar.NewReader(content)
	links := map[string]string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return makeLinks(links)
		}
		if err != nil {
			return err
		}
		path := filepath.Join(folder, header.Name)
		switch {
		case !filepath.IsLocal(header.Name):
			return fmt.Errorf("%q leads out of the archive", header.Name)
		case header.Typeflag == tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case header.Typeflag == tar.TypeReg:
			err = writeFile(path, archive, os.FileMode(header.Mode))
		case header.Typeflag == tar.TypeSymlink && filepath.IsAbs(header.Linkname):
			links[path], err = filepath.Rel(filepath.Dir(path), filepath.Join(folder, header.Linkname))
		default:
			err = fmt.Errorf("%s is neither a file nor a folder", header.Name)
		}
		if err != nil {
			return err
		}
	}
}

func makeLinks(links map[string]string) error {
	for path, target := range links {
		if err := os.Symlink(target, path); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, content io.Reader, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

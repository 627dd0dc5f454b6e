package dump

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// downloadTimeout bounds how long a dump at a URL may take.
const downloadTimeout = 10 * time.Minute

// dumpNames are the ends of the names that a folder is searched for, in small or large letters, with .gz or without.
var dumpNames = []string{".json", ".jsonl", ".yaml", ".yml"}

// mostEntries bounds how many files and folders are looked at in a folder: a folder with one file for each object of a
// large cluster has fewer.
const mostEntries = 1_000_000

// ReadFiles reads the dumps of these names as one: files, folders with such files in them or in their folders, http
// and https URLs, and "-" for stdin. Files and folders in a folder whose names start with a dot are left out. Errors
// name the file. See Read.
func ReadFiles(ctx context.Context, names []string, stdin io.Reader, handler Handler) (Counts, error) {
	names, err := withoutFolders(names)
	if err != nil {
		return Counts{}, err
	}
	d := newReader(handler)
	d.emptyLists = len(names) > 1 // a namespace without pods has an empty list
	for _, name := range names {
		if err := d.readNamed(ctx, name, stdin); err != nil {
			return Counts{}, err
		}
	}
	if d.emptyLists && d.objects() == 0 {
		return Counts{}, fmt.Errorf("%s and %d more: %w; all lists are empty", names[0], len(names)-1, errNotADump)
	}
	return d.counts, nil
}

// withoutFolders puts the dumps in folders, by name, in the places of these.
func withoutFolders(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		if name == "-" || isURL(name) {
			out = append(out, name)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, name)
			continue
		}
		found, err := dumpsIn(name)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// dumpsIn returns the dumps in a folder and in its folders. It follows no link to a folder, so that it ends.
func dumpsIn(folder string) ([]string, error) {
	root, err := filepath.EvalSymlinks(folder) // which WalkDir does not follow either
	if err != nil {
		return nil, err
	}
	var out []string
	entries := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != root && strings.HasPrefix(entry.Name(), ".")
		if entries++; entries > mostEntries {
			return fmt.Errorf("%s: holds more than %d files: give the folders with the dumps in it", folder, mostEntries)
		}
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || !isDump(entry.Name()):
			return nil
		}
		path = filepath.Join(folder, strings.TrimPrefix(path, root))
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case info.IsDir(): // a link
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s: is no file but %s: give it by its own name if it is meant", path, info.Mode().Type())
		}
		out = append(out, path)
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s holds no dump: no file whose name ends with one of %s, with .gz or without", folder,
			strings.Join(dumpNames, ", "))
	}
	return out, err
}

func isDump(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	return slices.Contains(dumpNames, filepath.Ext(name))
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

func (d *reader) readNamed(ctx context.Context, name string, stdin io.Reader) error {
	switch {
	case name == "-":
		return d.readAs(stdin, "standard input")
	case isURL(name):
		return d.download(ctx, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.readAs(f, name)
}

func (d *reader) download(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err // it names the URL
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return d.readAs(response.Body, url)
}

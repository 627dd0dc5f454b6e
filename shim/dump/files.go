package dump

import (
	"context"
	"errors"
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
// and https URLs, and "-" for stdin. Links to folders are followed, each folder once. Files and folders in a folder
// whose names start with a dot are left out. Errors name the file. See Read.
func ReadFiles(ctx context.Context, names []string, stdin io.Reader, handler Handler) (Counts, error) {
	given := names
	names, err := withoutFolders(names)
	if err != nil {
		return Counts{}, err
	}
	d := newReader(handler)
	d.emptyLists = len(names) > 1 // a namespace without pods has an empty list
	for _, name := range names {
		err := d.readNamed(ctx, name, stdin)
		if errors.Is(err, errNotADump) && !slices.Contains(given, name) {
			err = fmt.Errorf("%w; it is in a folder: move it elsewhere, or give the dumps by their own names", err)
		}
		if err != nil {
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

// dumpsIn returns the dumps in a folder and in its folders, also where links lead to these.
func dumpsIn(folder string) ([]string, error) {
	w := folderWalk{top: folder, seen: map[string]bool{}}
	err := w.into(folder)
	if err == nil && len(w.dumps) == 0 {
		err = fmt.Errorf("%s holds no dump: no file whose name ends with one of %s, with .gz or without", folder,
			strings.Join(dumpNames, ", "))
	}
	return w.dumps, err
}

// folderWalk looks for dumps in a folder and in its folders.
type folderWalk struct {
	top string
	// seen are the folders that were looked into, by their paths without links: each counts once, so that a link to a
	// folder above ends too.
	seen    map[string]bool
	entries int
	dumps   []string
}

// into looks into a folder, its entries by name.
func (w *folderWalk) into(folder string) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil || w.seen[path] {
		return err
	}
	w.seen[path] = true
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if w.entries++; w.entries > mostEntries {
			return fmt.Errorf("%s: holds more than %d files: give the folders with the dumps in it", w.top, mostEntries)
		}
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := w.take(filepath.Join(folder, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}

// take looks into an entry that is a folder, or keeps it where it is a dump.
func (w *folderWalk) take(path string, entry fs.DirEntry) error {
	mode := entry.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(path)
		if err != nil { // it may be the folder with the pods, so that it is not left out
			return fmt.Errorf("a link that cannot be followed: %w", err)
		}
		mode = info.Mode().Type()
	}
	switch {
	case mode.IsDir():
		return w.into(path)
	case !isDump(path):
		return nil
	case !mode.IsRegular():
		return fmt.Errorf("%s: is no file but %s: give it by its own name if it is meant", path, mode)
	}
	w.dumps = append(w.dumps, path)
	return nil
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

// Package bundle puts together the contents of the image of each program, and lists them.
package bundle

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"loadline.dev/tools/release/debian"
	"loadline.dev/tools/release/elf"
	"loadline.dev/tools/release/image"
)

// A Program has an image of its own, with the name of the file that was built.
type Program struct {
	Name, Description string
	// File is what the program is called in its image: manifests/ run it by that name, whatever minor it was built from.
	File string
	// Link is a further path of the program, by which manifests of others run it; empty: there is none.
	Link string
}

const scheduler = "loadline-scheduler"

// Programs returns those that manifests/ run: three, and one for each further minor of Kubernetes that the scheduler
// was built from, such as bin/loadline-scheduler-1.37.
func Programs(build string) ([]Program, error) {
	all := []Program{
		{Name: "loadlined", File: "loadlined",
			Description: "The engine of Loadline: answers on a unix socket which node a pod, and which nodes a cluster needs"},
		{Name: "loadline", Description: "The command line, gateway and autoscaler of Loadline", File: "loadline",
			Link: "/cluster-autoscaler"}, // where Cluster Autoscaler's images have it
		{Name: scheduler, Description: "kube-scheduler with the plugin of Loadline", File: scheduler},
	}
	further, err := filepath.Glob(filepath.Join(build, "bin", scheduler+"-*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(further)
	for _, file := range further {
		name := filepath.Base(file)
		minor := strings.TrimPrefix(name, scheduler+"-")
		all = append(all, Program{Name: name, Description: "kube-scheduler " + minor + " with the plugin of Loadline",
			File: scheduler})
	}
	return all, nil
}

// library is what all programs load: the engine. loadlined is linked with it, the others may open it.
const library = "libloadline.so"

// A Platform is what programs are built for.
type Platform struct {
	// Architecture is Go's name of it, Triplet that of the folders of libraries.
	Architecture, Triplet string
	// Root is where the Debian system lies whose libraries they were linked with.
	Root string
}

// The platforms that images are made for: this machine's, and what was built against the packages in a folder.
var AMD64 = Platform{Architecture: "amd64", Triplet: "x86_64-linux-gnu", Root: "/"}

// ARM64 returns the platform of programs that were linked with the libraries below root.
func ARM64(root string) Platform {
	return Platform{Architecture: "arm64", Triplet: "aarch64-linux-gnu", Root: root}
}

// A Build is a folder with what `make build` or `make images` has built: bin/ and lib/.
type Build struct {
	Folder   string
	Version  string
	When     time.Time
	Platform Platform
}

// A Bundle is an image with what is known of it.
type Bundle struct {
	Program  Program
	Image    v1.Image
	Packages []debian.Package
	Info     *buildinfo.BuildInfo // nil for C++
	// Debug holds the symbols, by the paths at which debuggers look for them.
	Debug image.Tree
}

// parts are the files of one layer with the packages that they are of.
type parts struct {
	tree     image.Tree
	packages map[string]debian.Package
}

// Make returns the images of all programs. They share their lowest layers: the libraries of the engine, and the engine.
func (b Build) Make() ([]Bundle, error) {
	engine := filepath.Join(b.Folder, "lib", library)
	base, err := b.libraries([]string{engine}, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(base.tree, identity())
	stripped, err := elf.Strip(engine)
	if err != nil {
		return nil, err
	}
	shared := image.Tree{"/usr/lib/" + library: {Content: stripped.Content}}
	programs, err := Programs(b.Folder)
	if err != nil {
		return nil, err
	}
	var all []Bundle
	for _, program := range programs {
		bundle, err := b.one(program, base, shared)
		if err != nil {
			return nil, fmt.Errorf("image of %s: %w", program.Name, err)
		}
		bundle.Debug[stripped.DebugPath] = image.File{Content: stripped.Debug}
		all = append(all, bundle)
	}
	return all, nil
}

func (b Build) one(program Program, base parts, shared image.Tree) (Bundle, error) {
	file := filepath.Join(b.Folder, "bin", program.Name)
	stripped, err := elf.Strip(file)
	if err != nil {
		return Bundle{}, err
	}
	own, err := b.libraries([]string{file}, base.tree)
	if err != nil {
		return Bundle{}, err
	}
	path := "/usr/bin/" + program.File
	own.tree[path] = image.File{Content: stripped.Content, Executable: true}
	if program.Link != "" {
		own.tree[program.Link] = image.File{Link: path}
	}
	bundle := Bundle{Program: program,
		Debug: image.Tree{stripped.DebugPath: {Content: stripped.Debug}}}
	bundle.Image, err = image.Build(image.Meta{Title: program.Name, Description: program.Description,
		Version: b.Version, Program: path, Architecture: b.Platform.Architecture, When: b.When},
		[]image.Tree{base.tree, shared, own.tree})
	if err != nil {
		return Bundle{}, err
	}
	packages := maps.Clone(base.packages)
	maps.Copy(packages, own.packages)
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		bundle.Packages = append(bundle.Packages, packages[name])
	}
	if info, err := buildinfo.ReadFile(file); err == nil {
		bundle.Info = info
	}
	return bundle, nil
}

// libraries returns the files of all libraries that programs need, but for those in `there`, with what their packages
// say of themselves: scanners of images look for var/lib/dpkg/status.d, licenses ask for the copyright.
func (b Build) libraries(files []string, there image.Tree) (parts, error) {
	found, err := elf.System{Root: b.Platform.Root, Triplet: b.Platform.Triplet}.Libraries(files,
		map[string]string{library: filepath.Join(b.Folder, "lib", library)})
	if err != nil {
		return parts{}, err
	}
	p := parts{tree: image.Tree{}, packages: map[string]debian.Package{}}
	for _, path := range found {
		if _, ok := there[path]; ok {
			continue
		}
		content, err := os.ReadFile(filepath.Join(b.Platform.Root, path))
		if err != nil {
			return parts{}, err
		}
		p.tree[path] = image.File{Content: content, Executable: true}
		owner, err := debian.System{Root: b.Platform.Root}.Owner(path)
		if err != nil {
			return parts{}, err
		}
		p.packages[owner.Name] = owner
	}
	for name, owner := range p.packages {
		p.tree["/var/lib/dpkg/status.d/"+name] = image.File{Content: []byte(owner.Status)}
		p.tree["/usr/share/doc/"+name+"/copyright"] = image.File{Content: owner.Copyright}
	}
	return p, nil
}

// identity says who runs and how names of hosts are looked up, to those who ask the C library.
func identity() image.Tree {
	return image.Tree{
		"/etc/passwd": {Content: []byte("root:x:0:0:root:/:/sbin/nologin\n" +
			"nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		"/etc/group":         {Content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		"/etc/nsswitch.conf": {Content: []byte("hosts: files dns\n")},
		"/etc/os-release": {Content: bytes.Join([][]byte{[]byte(`ID=debian`), []byte(`VERSION_ID="12"`),
			[]byte(`PRETTY_NAME="Libraries of Debian GNU/Linux 12 (bookworm)"`), nil}, []byte("\n"))},
	}
}

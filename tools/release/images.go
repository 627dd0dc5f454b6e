package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"loadline.dev/tools/release/bundle"
	"loadline.dev/tools/release/image"
	"loadline.dev/tools/release/sbom"
)

// images writes for each program a layout, an archive and a bill of materials, and one archive of symbols.
func images(flags *flag.FlagSet, args []string) error {
	var built builds
	built.flags(flags, "build")
	out := flags.String("out", "build/images", "`folder` for the images")
	version := flags.String("version", "", "`version` of the images, such as v0.1.0")
	registry := flags.String("registry", "localhost", "`host[:port][/path]` in their names; push takes any other")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" {
		return fmt.Errorf("--version is missing")
	}
	when, err := sourceDate()
	if err != nil {
		return err
	}
	made, err := makeImages(built, *version, when)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	return writeImages(made, *out, *registry, *version, when)
}

// sourceDate returns the time of everything in an image: SOURCE_DATE_EPOCH, as all that builds reproducibly has it.
func sourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a number of seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// builds are the folders with bin/ and lib/ of each architecture; arm64 is "" where there is nothing for it.
type builds struct{ amd64, arm64, arm64Root string }

func (b *builds) flags(flags *flag.FlagSet, amd64 string) {
	flags.StringVar(&b.amd64, "build", amd64, "`folder` with bin/ and lib/")
	flags.StringVar(&b.arm64, "arm64", "", "`folder` with bin/ and lib/ for linux/arm64")
	flags.StringVar(&b.arm64Root, "arm64-root", "build/arm64/sysroot", "`folder` of the system that they were linked with")
}

// folders returns them by architecture.
func (b builds) folders() map[string]string {
	all := map[string]string{"amd64": b.amd64}
	if b.arm64 != "" {
		all["arm64"] = b.arm64
	}
	return all
}

func (b builds) platforms() []bundle.Build {
	all := []bundle.Build{{Folder: b.amd64, Platform: bundle.AMD64}}
	if b.arm64 != "" {
		all = append(all, bundle.Build{Folder: b.arm64, Platform: bundle.ARM64(b.arm64Root)})
	}
	return all
}

// makeImages returns the bundles of each platform, all of the same programs in the same order.
func makeImages(built builds, version string, when time.Time) ([][]bundle.Bundle, error) {
	var all [][]bundle.Bundle
	for _, build := range built.platforms() {
		build.Version, build.When = version, when
		made, err := build.Make()
		if err != nil {
			return nil, fmt.Errorf("linux/%s: %w", build.Platform.Architecture, err)
		}
		all = append(all, made)
		if first := names(all[0]); !slices.Equal(names(made), first) {
			return nil, fmt.Errorf("linux/%s has programs %v, linux/amd64 %v", build.Platform.Architecture, names(made), first)
		}
	}
	return all, nil
}

func names(made []bundle.Bundle) (all []string) {
	for _, b := range made {
		all = append(all, b.Program.Name)
	}
	return all
}

func writeImages(made [][]bundle.Bundle, out, registry, version string, when time.Time) error {
	symbols := image.Tree{}
	for i, b := range made[0] {
		var all []v1.Image
		for _, platform := range made {
			all = append(all, platform[i].Image)
			maps.Copy(symbols, platform[i].Debug)
			if err := writeBill(platform[i], out, version, when); err != nil {
				return err
			}
		}
		name := b.Program.Name
		if err := writeIndex(all, filepath.Join(out, name), registry+"/"+name, version, when); err != nil {
			return err
		}
	}
	archive, err := symbols.Archive(when)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "symbols.tar.gz"), archive, 0o644)
}

// writeIndex writes the images of one program, one for each architecture, as a layout and as an archive.
func writeIndex(all []v1.Image, folder, repository, version string, when time.Time) error {
	index, err := image.Index(all)
	if err != nil {
		return err
	}
	if err := image.Write(folder, repository+":"+version, version, index); err != nil {
		return err
	}
	if err := image.Archive(folder, folder+".tar", when); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%-24s %s\n", filepath.Base(folder), digest)
	for _, one := range all {
		config, err := one.ConfigFile()
		if err != nil {
			return err
		}
		size, err := image.Size(one)
		if err != nil {
			return err
		}
		fmt.Printf("%-24s %s/%s, %.1f MiB compressed\n", "", config.OS, config.Architecture, float64(size)/(1<<20))
	}
	return nil
}

// layouts returns the names of the images in a folder, which are those of their programs.
func layouts(folder string) (names []string, err error) {
	found, err := filepath.Glob(filepath.Join(folder, "*", "oci-layout"))
	for _, file := range found {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s has no images: make images first", folder)
	}
	slices.Sort(names)
	return names, err
}

func writeBill(b bundle.Bundle, out, version string, when time.Time) error {
	config, err := b.Image.ConfigFile()
	if err != nil {
		return err
	}
	bill, err := sbom.Of(b, version, when)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, b.Program.Name+"-"+config.Architecture+".cdx.json"), bill, 0o644)
}

// push sends the images that were made to a registry, with the credentials that docker or podman login has left.
func push(flags *flag.FlagSet, args []string) error {
	from := flags.String("from", "build/images", "`folder` with the images")
	version := flags.String("version", "", "`version` of the images, such as v0.1.0")
	registry := flags.String("registry", "", "`host[:port][/path]` to push to")
	insecure := flags.Bool("insecure", false, "speak plain HTTP")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *registry == "" || *version == "" {
		return fmt.Errorf("--registry (make push REGISTRY=registry.example/loadline) or --version is missing")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var options []name.Option
	if *insecure {
		options = append(options, name.Insecure)
	}
	programs, err := layouts(*from)
	if err != nil {
		return err
	}
	for _, program := range programs {
		tag, err := name.NewTag(strings.TrimSuffix(*registry, "/")+"/"+program+":"+*version, options...)
		if err != nil {
			return err
		}
		index, err := image.Read(filepath.Join(*from, program))
		if err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		if err := remote.WriteIndex(tag, index, remote.WithContext(ctx),
			remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("pushing %s: %w", tag, err)
		}
		fmt.Printf("%s@%s\n", tag, digest)
	}
	return nil
}

package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
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
	build := flags.String("build", "build", "`folder` with bin/ and lib/")
	out := flags.String("out", "build/images", "`folder` for the images")
	version := flags.String("version", "", "`version` of the images, such as v0.1.0")
	registry := flags.String("registry", "ghcr.io/loadline", "where clusters pull them from")
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
	made, err := makeImages(*build, *version, when)
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

// makeImages returns the bundles of each platform, all in the order of the programs.
func makeImages(folder, version string, when time.Time) ([][]bundle.Bundle, error) {
	var all [][]bundle.Bundle
	for _, platform := range bundle.Platforms() {
		made, err := bundle.Build{Folder: folder, Version: version, When: when, Platform: platform}.Make()
		if err != nil {
			return nil, fmt.Errorf("linux/%s: %w", platform.Architecture, err)
		}
		all = append(all, made)
	}
	return all, nil
}

func writeImages(made [][]bundle.Bundle, out, registry, version string, when time.Time) error {
	symbols := image.Tree{}
	for i, program := range bundle.Programs {
		var all []v1.Image
		for _, platform := range made {
			all = append(all, platform[i].Image)
			maps.Copy(symbols, platform[i].Debug)
			if err := writeBill(platform[i], out, version, when); err != nil {
				return err
			}
		}
		index, err := image.Index(all)
		if err != nil {
			return err
		}
		folder := filepath.Join(out, program.Name)
		if err := image.Write(folder, registry+"/"+program.Name+":"+version, version, index); err != nil {
			return err
		}
		if err := image.Archive(folder, folder+".tar", when); err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		size, err := image.Size(all[0])
		if err != nil {
			return err
		}
		fmt.Printf("%-20s %s %5.1f MiB compressed\n", program.Name, digest, float64(size)/(1<<20))
	}
	archive, err := symbols.Archive(when)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "symbols.tar.gz"), archive, 0o644)
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
		return fmt.Errorf("--registry or --version is missing")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var options []name.Option
	if *insecure {
		options = append(options, name.Insecure)
	}
	for _, program := range bundle.Programs {
		tag, err := name.NewTag(strings.TrimSuffix(*registry, "/")+"/"+program.Name+":"+*version, options...)
		if err != nil {
			return err
		}
		index, err := image.Read(filepath.Join(*from, program.Name))
		if err != nil {
			return fmt.Errorf("%w: make images first", err)
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

package image

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is whom programs of the images run as when nothing else is said: a number, because Kubernetes refuses to take a
// name for "not root".
const User = "65532:65532"

// Meta says what an image is.
type Meta struct {
	Title, Description, Version string
	// Program is the path of what it runs.
	Program string
	// Architecture is Go's name of it, such as amd64.
	Architecture string
	// When is the time of everything in it.
	When time.Time
}

// Build returns an image of the layers, the first one lowest.
func Build(meta Meta, layers []Tree) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for i, tree := range layers {
		layer, err := tree.layer(meta.When)
		if err != nil {
			return nil, fmt.Errorf("layer %d of %s: %w", i, meta.Title, err)
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: meta.When}, CreatedBy: "make images"}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", meta.Architecture
	config.Created = v1.Time{Time: meta.When}
	config.Config = v1.Config{
		User:       User,
		Entrypoint: []string{meta.Program},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: "/",
		Labels:     meta.labels(),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, meta.labels()).(v1.Image), nil
}

func (m Meta) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       m.Title,
		"org.opencontainers.image.description": m.Description,
		"org.opencontainers.image.version":     m.Version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     m.When.UTC().Format(time.RFC3339),
	}
}

// Index returns an index of the images, one for each architecture.
func Index(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}}})
	}
	return index, nil
}

// Size returns how many bytes the image has in a registry.
func Size(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	size, err := image.Size()
	if err != nil {
		return 0, err
	}
	size += manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}

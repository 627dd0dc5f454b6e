// Package sbom writes down what an image consists of: Debian packages and Go modules with their versions, in the format
// of CycloneDX.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"loadline.dev/tools/release/bundle"
	"loadline.dev/tools/release/debian"
)

// Of returns the bill of materials of an image. Equal images give equal bytes.
func Of(b bundle.Bundle, version string, when time.Time) ([]byte, error) {
	digest, err := b.Image.Digest()
	if err != nil {
		return nil, err
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(digest.Hex)
	bom.Metadata = &cdx.Metadata{
		Timestamp: when.UTC().Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: b.Program.Name, Type: cdx.ComponentTypeContainer, Name: b.Program.Name,
			Version: version, Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest.Hex}}},
	}
	components := []cdx.Component{{BOMRef: "libloadline", Type: cdx.ComponentTypeLibrary, Name: "libloadline",
		Version: version}}
	for _, p := range b.Packages {
		components = append(components, ofPackage(p))
	}
	if b.Info != nil {
		components = append(components, cdx.Component{BOMRef: "pkg:golang/std@" + b.Info.GoVersion,
			Type: cdx.ComponentTypeLibrary, Name: "std", Version: b.Info.GoVersion,
			PackageURL: "pkg:golang/std@" + strings.TrimPrefix(b.Info.GoVersion, "go")})
		for _, module := range b.Info.Deps {
			components = append(components, ofModule(module, version))
		}
	}
	var needs []string
	for _, c := range components {
		needs = append(needs, c.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: b.Program.Name, Dependencies: &needs}}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	err = encoder.Encode(bom)
	return out.Bytes(), err
}

// serial makes of a digest what the format asks for: a name that no other bill has, in the form of a UUID.
func serial(digest string) string {
	h := sha256.Sum256([]byte("bill of materials of " + digest))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8, as RFC 9562 has it for those of one's own making
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

func ofPackage(p debian.Package) cdx.Component {
	return cdx.Component{BOMRef: p.PURL(), Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version,
		PackageURL: p.PURL(), Properties: &[]cdx.Property{
			{Name: "debian:source", Value: p.Source}, {Name: "debian:source-version", Value: p.SourceVersion}}}
}

// ofModule describes a Go module. One of this project's has the version of the release, and no sum.
func ofModule(m *debug.Module, version string) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version}
	if strings.HasPrefix(m.Path, "loadline.dev/") {
		c.Version = version
	}
	c.PackageURL = "pkg:golang/" + m.Path + "@" + c.Version
	c.BOMRef = c.PackageURL
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		// The hash of the module's go.sum, h1: SHA-256 over the list of its files with their hashes.
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}
